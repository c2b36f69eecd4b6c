"""Hints: which experts only confirmed what others found, so that they need not be asked again while the content is unchanged.

A hint is made of one whole answer with at least one item of tier symbol-confirmed or better. Its *leads* are the experts, by prior, that
together found every item of the page; the others merely agreed, and what they said is kept with the content hashes of the files. Pure, but
for the store at the end. See docs/decisions/0031.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, cast

from search_router.errors import EvidenceError
from search_router.router.enrich.owner import Owner
from search_router.router.evidence import CodeAddress, parse_evidence_id
from search_router.router.fanout import Reply
from search_router.router.plan import Plan
from search_router.schema import (
    Answer,
    DocumentFacts,
    ExpertReport,
    ExpertResult,
    ExpertStatus,
    FileFacts,
    Hit,
    Tier,
    Yielding,
)

CONFIRMED: Final = frozenset({Tier.TYPED_GRAPH_CONFIRMED, Tier.SYMBOL_CONFIRMED})
PREFIX: Final = 16
"""Hexadecimal digits of a content hash that are kept."""
MAX_IN_MEMORY: Final = 1000
MAX_HINT_BYTES: Final = 500_000

FileKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Agreement:
    """What one expert said that only agreed with others: its hits in files, and what it knows of documents."""

    hits: tuple[Hit, ...]
    hidden: tuple[tuple[str, str], ...] = ()
    yields: tuple[Yielding, ...] = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """What one receipt proved for one question. `contents` are the content hashes (their first 16 digits) of all files that were hit."""

    key: str
    receipt_id: str
    stored_us: int
    leads: tuple[str, ...]
    agreed: Mapping[str, Agreement]
    worlds: Mapping[str, str]
    page: frozenset[FileKey]
    contents: Mapping[FileKey, str]

    def reason(self, expert: str) -> str:
        """Why this expert was not asked, for the plan and the receipt."""
        number, leads = len(self.agreed[expert].hits), ", ".join(self.leads)
        return f"hint: it only confirmed what {leads} found; its {number} hits of receipt {self.receipt_id} stand, content unchanged"


def make_hint(
    key: str,
    receipt_id: str,
    now_us: int,
    answer: Answer,
    replies: Sequence[Reply],
    facts: Mapping[FileKey, FileFacts],
    worlds: Mapping[str, str],
) -> Hint | None:
    """The hint that a whole answer gives; None when nothing on its page is confirmed, or nobody could be left out."""
    if not any(item.tier in CONFIRMED for item in answer.evidence):
        return None
    page = _page_files(answer)
    if page is None:
        return None
    leads = _leads(answer, replies)
    agreed = {
        reply.call.expert: Agreement(tuple(h for h in reply.result.hits if _file(h) in facts), reply.result.hidden, reply.result.yields)
        for reply in replies
        if reply.result is not None
        and reply.call.expert not in leads
        and reply.call.expert in worlds
        and all(hit.is_in_a_file for hit in reply.result.hits)
    }
    if not agreed:
        return None
    contents = {file: known.content_hash[:PREFIX] for file, known in facts.items()}
    return Hint(key, receipt_id, now_us, leads, agreed, {name: worlds[name] for name in agreed}, page, contents)


def _page_files(answer: Answer) -> frozenset[FileKey] | None:
    """The files of the page; None when an item is in no file, whose content no hash could vouch for."""
    found: set[FileKey] = set()
    for item in answer.evidence:
        try:
            address = parse_evidence_id(item.id)
        except EvidenceError:
            return None
        if not isinstance(address, CodeAddress):
            return None
        found.add((address.project, address.path))
    return frozenset(found)


def _leads(answer: Answer, replies: Sequence[Reply]) -> tuple[str, ...]:
    """Experts by prior until every item of the page has one of them; the best one always."""
    ordered = sorted(replies, key=lambda reply: (-reply.call.prior, reply.call.expert))
    left = [{source.expert for source in item.sources} for item in answer.evidence]
    leads: list[str] = []
    for reply in ordered:
        name = reply.call.expert
        if not leads or any(name in found for found in left):
            leads.append(name)
            left = [found for found in left if name not in found]
    return tuple(leads)


def _file(hit: Hit) -> FileKey:
    return hit.project, hit.path or ""


def apply_hint(plan: Plan, hint: Hint, void: Collection[str] = ()) -> Plan:
    """The plan without the calls that the hint makes needless; their experts are among the skipped, with the hint as their reason."""
    agreed = hint.agreed.keys() - set(void)
    kept = tuple(call for call in plan.calls if call.expert not in agreed)
    left_out = tuple(
        ExpertReport(id=call.expert, status=ExpertStatus.SKIPPED, reason=hint.reason(call.expert), sub_query=str(call.sub_query))
        for call in plan.calls
        if call.expert in agreed
    )
    skipped = tuple(sorted((*plan.skipped, *left_out), key=lambda report: report.id))
    return Plan(plan.intent, kept, skipped, plan.weights, plan.latency_ms, plan.max_experts, plan.reserve)


def files_to_read(hint: Hint, replies: Sequence[Reply], limit: int) -> list[FileKey]:
    """The files whose content decides whether the hint holds: those of its page, and those that the leads put first now."""
    first = [_file(hit) for reply in replies if reply.result for hit in reply.result.hits[:limit] if hit.is_in_a_file]
    return list(dict.fromkeys([*sorted(hint.page), *first]))


def why_void(hint: Hint, replies: Sequence[Reply], limit: int, contents: Mapping[FileKey, str]) -> dict[str, str]:
    """The experts that are to be asked after all, and why. `contents` are the content hashes of `files_to_read` now.

    All of them are, where the leads failed, lost something that was confirmed, or now put something first that nobody found then; one of
    them is, where a file changed in which it had confirmed something.
    """
    answered = {
        reply.call.expert for reply in replies if reply.result is not None and reply.result.partial is None and reply.result.settled
    }
    if not set(hint.leads) <= answered:
        return dict.fromkeys(hint.agreed, "an expert that it relies on gave no whole answer")
    if not hint.page <= {_file(hit) for reply in replies if reply.result for hit in reply.result.hits}:
        return dict.fromkeys(hint.agreed, "what was confirmed is not found any more")
    files = files_to_read(hint, replies, limit)
    new = next((file for file in files if file not in hint.contents), None)
    if new is not None:
        return dict.fromkeys(hint.agreed, f"{new[1]} was not found then")
    changed = [file for file in files if contents.get(file, "")[:PREFIX] != hint.contents[file]]
    void: dict[str, str] = {}
    for name, said in hint.agreed.items():
        confirmed = {_file(hit) for hit in said.hits}
        lost = next((file for file in changed if file in confirmed), None)
        if lost is not None:
            void[name] = f"{lost[1]} has other content than then"
    return void


def agreeing_replies(hint: Hint, plan: Plan, void: Collection[str], contents: Mapping[FileKey, str]) -> list[Reply]:
    """What the experts that were not asked said, as far as the content is unchanged; for the fusion, with the status skipped."""
    replies: list[Reply] = []
    for call in plan.calls:
        agreement = hint.agreed.get(call.expert)
        if agreement is not None and call.expert not in void:
            hits = _standing(hint, agreement.hits, contents)
            result = ExpertResult(hits, hidden=agreement.hidden, yields=agreement.yields)
            replies.append(Reply(call, ExpertStatus.SKIPPED, 0, hint.reason(call.expert), result))
    return replies


def _standing(hint: Hint, hits: Sequence[Hit], contents: Mapping[FileKey, str]) -> tuple[Hit, ...]:
    """The hits in unchanged files, at the ranks that they had: in the place of a hit that fell stands the one before it once more.

    The fusion counts an expert's duplicates once, at their best rank.
    """
    standing: list[Hit] = []
    for hit in hits:
        if contents.get(_file(hit), "")[:PREFIX] == hint.contents.get(_file(hit), "-"):
            standing.append(hit)
        elif standing:
            standing.append(standing[-1])
    return tuple(standing)


# ------------------------------------------------------------------ store


class HintStore:
    """The hints of one router: in memory, and in the file for other processes. Belongs to its event loop."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._memory: OrderedDict[str, Hint] = OrderedDict()

    def find(self, key: str) -> Hint | None:
        """The hint for this question, if there is one. Whether it holds is another matter."""
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        database = self._owner.reader()
        if database is None:
            return None
        try:
            row = database.execute("SELECT receipt_id, stored_us, entry FROM hints WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._owner.read_failed(error)
            return None
        hint = _unpacked(key, *row) if row is not None else None
        if hint is not None:
            self._remember(hint)
        return hint

    def keep(self, hint: Hint, answer: Answer) -> None:
        """Take a hint in the place of an earlier one, and write down what it rests on; it is written later."""
        self._remember(hint)
        confirmed = [
            (
                item.project,
                item.path or "",
                item.content_hash or "",
                item.symbol or "",
                ",".join(s.expert for s in item.sources),
                item.tier.value,
            )
            for item in answer.evidence
            if item.tier in CONFIRMED
        ]

        def write(database: sqlite3.Connection) -> None:
            packed = _packed(hint)
            if len(packed) <= MAX_HINT_BYTES:
                values = (hint.key, hint.stored_us, hint.stored_us, hint.receipt_id, packed)
                database.execute("INSERT OR REPLACE INTO hints VALUES (?, ?, ?, ?, ?)", values)
            for row in confirmed:
                database.execute(
                    "INSERT OR REPLACE INTO confirmations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, hint.stored_us, hint.receipt_id)
                )

        self._owner.submit(write)

    def kill(self, hint: Hint) -> None:
        """It did not hold: nobody shall try it again."""
        if self._memory.get(hint.key) is hint:
            del self._memory[hint.key]
        self._owner.submit(
            lambda database: database.execute("DELETE FROM hints WHERE key = ? AND receipt_id = ?", (hint.key, hint.receipt_id))
        )

    def _remember(self, hint: Hint) -> None:
        self._memory[hint.key] = hint
        self._memory.move_to_end(hint.key)
        while len(self._memory) > MAX_IN_MEMORY:
            self._memory.popitem(last=False)


_HIT_DEFAULTS: Final = {field.name: field.default for field in fields(Hit) if field.name != "project"}


def _packed(hint: Hint) -> bytes:
    """Raises ValueError for a path that is no text."""
    files = {file: number for number, file in enumerate(hint.contents)}
    row: dict[str, Any] = {
        "leads": hint.leads,
        "files": [[*file, digest] for file, digest in hint.contents.items()],
        "page": sorted(files[file] for file in hint.page if file in files),
        "worlds": dict(hint.worlds),
        "agreed": {
            name: {"hits": [_plain_hit(hit) for hit in said.hits], "hidden": said.hidden, "yields": said.yields}
            for name, said in hint.agreed.items()
        },
    }
    return zlib.compress(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8"), 1)


def _plain_hit(hit: Hit) -> dict[str, Any]:
    return {"project": hit.project} | {
        name: asdict(hit.about) if name == "about" and hit.about is not None else getattr(hit, name)
        for name, default in _HIT_DEFAULTS.items()
        if getattr(hit, name) != default
    }


def _unpacked(key: str, receipt_id: str, stored_us: int, packed: bytes) -> Hint | None:
    """None for a row that is damaged or of another build's shape."""
    try:
        row: dict[str, Any] = json.loads(zlib.decompress(packed))
        files: list[FileKey] = [(project, path) for project, path, _ in row["files"]]
        agreed = {
            name: Agreement(
                tuple(_hit_of(hit) for hit in said["hits"]),
                tuple((project, path) for project, path in said["hidden"]),
                tuple(Yielding(*each) for each in said["yields"]),
            )
            for name, said in row["agreed"].items()
        }
        numbers: list[int] = row["page"]
        page = frozenset(files[number] for number in numbers)
        contents = {(project, path): digest for project, path, digest in row["files"]}
        return Hint(key, receipt_id, stored_us, tuple(row["leads"]), agreed, row["worlds"], page, contents)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError):
        return None


def _hit_of(plain: dict[str, Any]) -> Hit:
    members, about = _frozen(plain), plain.get("about")
    if about is not None:
        members["about"] = DocumentFacts(**_frozen(about))
    return Hit(**members)


def _frozen(plain: dict[str, Any]) -> dict[str, Any]:
    """Lists, which JSON made of tuples, as tuples."""
    return {name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in plain.items()}
