"""The text an agent reads: compact, within a budget, with what was cut and how to get it. Pure."""

from __future__ import annotations

from search_router.answers import FetchAnswer, OutcomeAnswer, RegistryAnswer
from search_router.router.fanout import PARTIAL
from search_router.schema import Answer, Confidence, Evidence, ExpertStatus, Status
from search_router.wire_text import visible_line

MAX_ECHO = 300
FAILED = frozenset(ExpertStatus) - {ExpertStatus.OK, ExpertStatus.EMPTY, ExpertStatus.SKIPPED}


def render_answer(answer: Answer, budget: int) -> str:
    """At most `budget` characters: a head line, one block an item, then what failed, what was cut, and the receipt."""
    tail = _tail_lines(answer)
    if answer.error is not None:
        head = f"{answer.status.value}: {answer.error.message}"
        return "\n".join([head, *([f"Do: {answer.error.remedy}"] if answer.error.remedy else []), *tail])
    lines = [_head_line(answer), *answer.notes]
    room = budget - sum(len(line) + 1 for line in [*lines, *tail]) - 80
    shown = 0
    for number, item in enumerate(answer.evidence, start=1):
        block = _item_block(number, item)
        if len(block) > room:
            block = _item_block(number, item, snippet=False)
        if len(block) > room:
            break
        lines.append(block)
        room -= len(block) + 1
        shown += 1
    if shown < len(answer.evidence):
        lines.append(
            f"({len(answer.evidence) - shown} more items did not fit in {budget} characters: lower `limit` or use the structured result)"
        )
    return "\n".join([*lines, *tail])


def _head_line(answer: Answer) -> str:
    asked = [f"{e.id} {e.results}" for e in answer.experts if e.status in (ExpertStatus.OK, ExpertStatus.EMPTY)]
    intent = answer.classification.intent.value if answer.classification else "?"
    how = "abstained" if answer.classification and answer.classification.abstained else intent
    if answer.status is Status.CACHED:
        asked = ["from the cache, nothing has changed since"]
    if answer.found_nothing:
        why = answer.empty_reason.value if answer.empty_reason else "no_matches"
        return f"No evidence ({why}) · {how} · asked: {', '.join(asked) or 'nobody answered'}"
    return f"{len(answer.evidence)} items · {how} · {', '.join(asked)} · {answer.budget.used_ms:.0f} ms"


def _item_block(number: int, item: Evidence, *, snippet: bool = True) -> str:
    experts = " ".join(f"{s.expert}#{s.rank}" for s in item.sources)
    trust = f"{item.tier.value}, {item.confidence.value}"
    flags = f" !{' !'.join(item.flags)}" if item.flags else ""
    if item.commit is not None:
        head = f"{number}. {item.id}  {(item.date or '')[:10]}  {visible_line(item.subject or '')}"
        paths = ", ".join(visible_line(path) for path in (item.paths or ())[:5])
        more = f" (+{len(item.paths or ()) - 5})" if len(item.paths or ()) > 5 else ""
        return f"{head}\n   [{trust}] {experts}{flags}" + (f"\n   {visible_line(item.snippet)} · {paths}{more}" if snippet else "")
    name = f"  {item.kind} {visible_line(item.symbol)}" if item.symbol else ""
    block = f"{number}. {item.id}{name}{_about(item)}\n   [{trust}] {experts}{flags}"
    if item.confidence is Confidence.LOW and item.nuance:
        block += f" · {item.nuance}"
    if snippet and item.snippet:
        block += "\n" + "\n".join(f"   | {line}" for line in item.snippet.split("\n"))
    return block


def _about(item: Evidence) -> str:
    """A document's title and section, whose it is, and whether it still holds."""
    if item.title is None and item.url is None:
        return ""
    name = " › ".join(part for part in (item.title, item.heading) if part)
    whose = f"  ({item.library} {item.version})" if item.library else ""
    until = f", until {item.valid_until}" if item.valid_until else ""
    where = f" {item.url}" if item.url else ""
    return visible_line(f"  {name}{where}{whose}") + (
        f"  ({item.status}{until})" if item.status and (item.status != "current" or until) else ""
    )


def _tail_lines(answer: Answer) -> list[str]:
    lines = [f"{e.id} {e.status.value}: {e.reason}" for e in answer.experts if e.status in FAILED]
    looked = (ExpertStatus.OK, ExpertStatus.EMPTY)
    lines += [f"{e.id}: partial: {e.reason.partition(PARTIAL)[2]}" for e in answer.experts if e.status in looked and PARTIAL in e.reason]
    if answer.cut.hint:
        lines.append(answer.cut.hint + (f" · cursor {answer.cut.cursor}" if answer.cut.cursor else ""))
    if answer.receipt is not None:
        lines.append(f"receipt {answer.receipt.id}")
    return lines


def render_fetch(answer: FetchAnswer) -> str:
    """Each item as a head line and its numbered text; problems after them."""
    lines: list[str] = []
    if answer.error is not None:
        lines += [f"{answer.status.value}: {answer.error.message}", answer.error.remedy]
    for item in answer.items:
        fresh = {True: "fresh", False: "CHANGED since the search", None: "freshness unknown"}[item.fresh]
        flags = f" !{' !'.join(item.flags)}" if item.flags else ""
        lines += [f"== {item.id} ({fresh}){flags}", item.text]
        if item.cut:
            lines.append(item.cut)
    lines += [f"{_short(p.id)}: {p.code}: {p.message} {p.remedy}".rstrip() for p in answer.problems]
    if answer.receipt is not None:
        lines.append(f"receipt {answer.receipt.id}")
    return "\n".join(line for line in lines if line)


def _short(text: str) -> str:
    """What a caller sent, on one line, and never more of it than names it."""
    return visible_line(text) if len(text) <= MAX_ECHO else f"{visible_line(text[:MAX_ECHO])}… ({len(text)} characters)"


def render_outcome(answer: OutcomeAnswer) -> str:
    """One line: who is credited, or why the outcome was not taken; and the receipt."""
    if answer.error is not None:
        said = f"{answer.status.value}: {answer.error.message} {answer.error.remedy}".rstrip()
    else:
        credited = ", ".join(f"{c.expert} {c.reward_pm * c.share_pm // 1000}‰ for {c.evidence}" for c in answer.credited)
        said = f"taken: {credited or 'nobody is credited'}"
    return f"{said}\nreceipt {answer.receipt.id}" if answer.receipt is not None else said


def render_registry(answer: RegistryAnswer) -> str:
    """One line an expert, one a project."""
    lines = [f"search-router {answer.build.version} · {answer.config.version} ({answer.config.hash[:12]})"]
    for e in answer.experts:
        state = "off" if not e.enabled else "ready" if e.available else "UNAVAILABLE"
        version = f" {e.version}" if e.version else ""
        lines.append(f"{e.id} [{e.precision_class.value}, {e.engine}{version}] {state}, cap {e.cap_ms} ms: {e.reason}")
    lines += [
        f"project {p.id} ({p.kind}) {p.root}"
        + (f" at {p.branch or 'detached'} {(p.head or 'no commit')[:12]}" if p.kind != "directory" else "")
        for p in answer.projects
    ]
    return "\n".join([*lines, *answer.notes])
