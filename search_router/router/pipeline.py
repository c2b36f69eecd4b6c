"""One request's path, from raw arguments to an answer without its receipt. Each step is a room of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from search_router.adapters.base import Expert, Indexed
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path
from search_router.adapters.local.manifest import read_manifest
from search_router.adapters.local.withheld import shown_paths, withholds_place
from search_router.errors import MAKE_READABLE, ExpertError, RequestError, RequestRejected
from search_router.router.absence import scope_lack
from search_router.router.advisers import take_advice
from search_router.router.classify import classify
from search_router.router.enrich.cache import CachedAnswer
from search_router.router.enrich.hints import apply_hint
from search_router.router.enrich.looking import Asking, Look
from search_router.router.enrich.session import reweigh
from search_router.router.evidence import make_evidence
from search_router.router.fanout import Progress, Reply, ask_experts
from search_router.router.fuse import Fused, fuse_rankings
from search_router.router.identity import Candidate, Dropped, FileKey, identify, normalise_path
from search_router.router.llm_intent import settle_abstention
from search_router.router.plan import ONE_SUFFICES, Plan, could_be_asked, plan_experts
from search_router.router.reach import within_reach
from search_router.router.request import parse_request, question_classes, question_of
from search_router.router.shape import next_cursor, page_start, shape_ranking
from search_router.router.succession import settle_documents
from search_router.router.tokens import QuestionTokens, analyse_question
from search_router.router.trace import Surroundings, Trace
from search_router.schema import (
    Answer,
    Cut,
    EmptyReason,
    ErrorReport,
    Evidence,
    ExpertCall,
    ExpertReport,
    ExpertStatus,
    FileFacts,
    Intent,
    Project,
    SearchRequest,
    StageReport,
    Status,
)

ANSWERED = frozenset({ExpertStatus.OK, ExpertStatus.EMPTY})
SHARE_TO_PRESENT = 1 / 6
"""Of the whole time; to read the last files without parsing them, to rank, and to sign."""
FINISH_SECONDS = 0.02
"""What a request takes of a slow machine once its experts have ended. All end on one loop, so each may wait for those before it."""
SHARE_TO_FINISH = 1 / 4
"""Of the whole time, at most so much is kept for that, however many requests are underway."""
TESTING_WORDS = frozenset({"test", "tests", "testing", "tested", "spec", "specs", "fixture", "fixtures", "mock", "mocks"})


async def run_request(trace: Trace, raw: object, progress: Progress | None = None) -> Answer:
    """The main path. A request that cannot be run becomes a rejected or declined answer, never an exception."""
    try:
        request, tokens = await _understand(trace, raw)
        projects = _visible(trace.surroundings, request)
        if not projects:
            return trace.answer(Status.EMPTY, empty_reason=EmptyReason.NO_VISIBLE_PROJECTS)
        start = page_start(request)
        plan = await _plan(trace, request, tokens, projects)
        look = await _look(trace, request, tokens, plan, start, projects)
        if look.found is not None:
            return _cached(trace, request, plan, look.found, start)
        async with trace.surroundings.admission.place() as waited:
            trace.begin_after(waited)
            await _ask(trace, plan, look, progress)
            candidates, facts = await _identify(trace, plan, projects)
            fused = _fuse(trace, plan, tokens, candidates)
            fused = await _take_advice(trace, request, plan, fused, facts)
            evidence, cut = _present(trace, request, fused, facts, start)
    except RequestError as error:
        return _refused(trace, error)
    if evidence:
        return trace.answer(Status.ANSWERED, evidence=evidence, cut=cut)
    return await _nothing(trace, projects, cut)


async def _understand(trace: Trace, raw: object) -> tuple[SearchRequest, QuestionTokens]:
    """Parse and classify; where the rules abstain and the budget allows it, a language model is asked."""
    config = trace.surroundings.config
    with trace.stages.run("request", 1) as stage:
        question = question_of(raw)
        if question is not None:
            trace.classes = question_classes(question)
        trace.request = request = parse_request(raw)
        stage.out = 1
    with trace.stages.run("classify", 1) as stage:
        tokens = analyse_question(request.question)
        trace.classification = classify(tokens, hint=request.intent, libraries=trace.surroundings.libraries, config=config.classify)
        stage.out = len(trace.classification.rules)
    if trace.classification.abstained:
        trace.classification, note = await settle_abstention(
            trace.surroundings.advisers.model,
            config.llm,
            request.question,
            trace.classification,
            request.budget.latency_ms or config.budget.latency_ms,
            trace.stages,
            allowed=request.budget.allow_llm,
        )
        trace.notes += [note] if note else []
    return request, tokens


def _visible(around: Surroundings, request: SearchRequest) -> tuple[Project, ...]:
    """The projects of the request's scope. Raises RequestRejected for a name in it that nobody knows."""
    declared = [card.languages for card in around.cards.values() if card.languages is not None]
    return around.workspace.visible(request.scope, frozenset[str]().union(*declared))


async def _plan(trace: Trace, request: SearchRequest, tokens: QuestionTokens, projects: tuple[Project, ...]) -> Plan:
    around = trace.surroundings
    assert trace.classification is not None
    with trace.stages.run("plan", len(around.config.experts)) as stage:
        candidates = could_be_asked(request, trace.classification, around.cards, around.config)
        health = await around.health.current(candidates)
        relied_on = set(around.config.gate.reserve.values()).intersection(candidates)
        complete = [name for name in relied_on if _is_complete(around.experts[name], projects)]
        trace.plan = plan_experts(request, trace.classification, tokens, projects, around.cards, health, around.config, complete)
        if trace.draw is None and trace.session is not None:
            trace.draw = around.enrichment.bandit.draw(trace.plan, trace.session)
        if trace.draw is not None:
            trace.plan = reweigh(trace.plan, trace.draw.weights_pm)
            stage.reason = f"weights drawn from {trace.draw.outcomes} outcomes of this session, seed {trace.draw.seed}"
        stage.out = len(trace.plan.calls)
    return trace.plan


async def _look(
    trace: Trace, request: SearchRequest, tokens: QuestionTokens, plan: Plan, start: int, projects: tuple[Project, ...]
) -> Look:
    """What earlier requests know: an answer that still holds, or experts that need not be asked."""
    assert trace.classification is not None
    around = trace.surroundings
    rooted = tuple((project, around.workspace.below(project)) for project in projects)
    asking = Asking(request, tokens, trace.classification, trace.classes, plan, start, rooted)
    if trace.look is not None:  # the caller decided
        trace.stages.skip("cache", trace.look.told, 1)
        return trace.look
    with trace.stages.run("cache", 1) as stage:
        look = trace.look = await around.enrichment.look(asking, plan.latency_ms / 1000 - trace.elapsed)
        stage.active, stage.reason, stage.out = not look.told.startswith("off"), look.told, int(look.found is not None)
    return look


def _cached(trace: Trace, request: SearchRequest, plan: Plan, found: CachedAnswer, start: int) -> Answer:
    """The earlier answer, for whom nobody was asked now; classification, cursor and sub-queries are this request's own."""
    then, earlier = found.answer, {report.id: report for report in found.answer.experts}
    reason = f"cache: nothing has changed since receipt {found.receipt_id}"
    unasked = [
        ExpertReport(id=call.expert, status=ExpertStatus.SKIPPED, results=old.results, sub_query=str(call.sub_query), reason=reason)
        for call in (*plan.calls, *plan.reserve)
        if (old := earlier.get(call.expert)) is not None and old.status is not ExpertStatus.SKIPPED
    ]
    names = {report.id for report in unasked}
    skipped = tuple(sorted((*unasked, *(r for r in plan.skipped if r.id not in names)), key=lambda report: report.id))
    trace.plan = replace(plan, calls=(), reserve=(), skipped=skipped)
    trace.notes += [note for note in then.notes if note not in trace.notes]
    cursor = next_cursor(request, start + len(then.evidence)) if then.cut.cursor else None
    cut = then.cut.model_copy(update={"cursor": cursor})
    return trace.answer(Status.CACHED, evidence=then.evidence, empty_reason=then.empty_reason, cut=cut)


async def _ask(trace: Trace, plan: Plan, look: Look, progress: Progress | None) -> None:
    await _ask_hinted(trace, plan, look, progress)
    if plan.reserve and not any(r.result.hits for r in trace.replies if r.result):
        await _ask_all(trace, plan, plan.reserve, "reserve", progress)
    noted: dict[str, list[str]] = {}
    for reply in trace.replies:
        if reply.result is not None:
            trace.stages.reports += [
                StageReport(**facts._replace(stage=f"{reply.call.expert}.{facts.stage}")._asdict()) for facts in reply.result.stages
            ]
            for note in reply.result.notes:
                noted.setdefault(note, []).append(reply.call.expert)
    trace.notes += [f"{', '.join(experts)}: {note}" for note, experts in noted.items()]  # experts of one index say the same


async def _ask_hinted(trace: Trace, plan: Plan, look: Look, progress: Progress | None) -> None:
    """Ask everybody, or first only those on whom a hint relies, and the others when the hint does not hold."""
    hint, request, around = look.hint, trace.request, trace.surroundings
    if hint is None or request is None:
        await _ask_all(trace, plan, plan.calls, "fanout", progress)
        return
    trace.plan = apply_hint(plan, hint)
    await _ask_all(trace, plan, trace.plan.calls, "fanout", progress)
    with trace.stages.run("hints", len(plan.calls)) as stage:
        left = plan.latency_ms / 1000 * (1 - SHARE_TO_PRESENT) - trace.elapsed
        agreed, void = await around.enrichment.agreed(look, plan, trace.replies, request.limit, around.sources, max(0.05, left))
        stage.out = len(plan.calls) - len(agreed)
        stage.reason = "; ".join([f"receipt {hint.receipt_id}", *(f"{name} is asked: {why}" for name, why in void.items())])
    trace.hints = tuple(f"{'void' if name in void else 'holds'} {name} {hint.receipt_id}" for name in hint.agreed)
    trace.plan = apply_hint(plan, hint, void)
    if void:
        await _ask_all(trace, plan, tuple(call for call in plan.calls if call.expert in void), "fanout", progress)
    trace.replies = (*trace.replies, *agreed)


async def _ask_all(trace: Trace, plan: Plan, calls: tuple[ExpertCall, ...], stage_name: str, progress: Progress | None) -> None:
    heard: dict[str, Reply] = {}
    before = trace.replies
    with trace.stages.run(stage_name, len(calls)) as stage:
        budget = plan.latency_ms / 1000
        finishing = min(budget * SHARE_TO_FINISH, FINISH_SECONDS * trace.underway)
        left = budget - finishing - trace.elapsed
        try:
            await ask_experts(trace.surroundings.experts, calls, left, heard, progress)
        finally:
            trace.replies = (*before, *(heard[call.expert] for call in calls if call.expert in heard))
        stage.out = sum(len(reply.result.hits) for reply in heard.values() if reply.result)


def _is_complete(expert: Expert, projects: tuple[Project, ...]) -> bool:
    return isinstance(expert, Indexed) and expert.is_complete(projects)


async def _identify(trace: Trace, plan: Plan, projects: tuple[Project, ...]) -> tuple[list[Candidate], Mapping[FileKey, FileFacts]]:
    """Read the files that hits point at, best ranks first, and group the hits by identity."""
    candidates = trace.surroundings.config.fusion.candidates
    by_id = {p.id: p for p in projects}
    answers = {r.call.expert: r.result.hits[:candidates] for r in trace.replies if r.result}
    if any(project.withheld for project in projects):
        answers = {expert: shown_paths(hits, by_id) for expert, hits in answers.items()}
    with trace.stages.run("identify", sum(map(len, answers.values()))) as stage:
        keys: dict[tuple[str, str], FileKey | None] = {}
        for name, path in dict.fromkeys([(h.project, h.path or "") for hits in answers.values() for h in hits if h.is_in_a_file]):
            project = by_id.get(name)
            key = normalise_path(path, project, projects, lambda p: p.exists()) if project else None
            keys[name, path] = None if key is not None and withholds_place(by_id[key[0]], key[1]) else key
        quiet = {call.expert for call in plan.calls if call.is_quiet}
        answers, unseen = within_reach(answers, keys, quiet, trace.request.limit if trace.request else candidates)
        wanted = {keys.get((h.project, h.path or "")) for hits in answers.values() for h in hits if h.is_in_a_file}
        left = plan.latency_ms / 1000 * (1 - SHARE_TO_PRESENT) - trace.elapsed
        facts, undefined = await trace.surroundings.sources.read([k for k in keys.values() if k in wanted and k], by_id, max(0.05, left))
        trace.facts, trace.undefined = facts, undefined
        if undefined:
            trace.notes.append(
                f"{undefined} files were not parsed in time, so items in them may stand apart that belong together; ask again"
            )
        dropped = Dropped()
        silent = [name for name, weight in plan.weights.items() if weight == 0]
        found = identify(answers, keys, facts, dropped, silent)
        stage.out = len(found)
        if dropped.counts:
            trace.dropped = str(dropped)
        if left_out := [*([trace.dropped] if trace.dropped else []), *([f"{unseen} below every page"] if unseen else [])]:
            stage.reason = f"left out: {', '.join(left_out)}"
    return found, facts


def _fuse(trace: Trace, plan: Plan, tokens: QuestionTokens, candidates: list[Candidate]) -> list[Fused]:
    with trace.stages.run("fuse", len(candidates)) as stage:
        fused = fuse_rankings(
            candidates,
            weights=plan.weights,
            cards=trace.surroundings.cards,
            config=trace.surroundings.config.fusion,
            names=frozenset(name.lower() for name in tokens.identifiers),
            damped=_damped(candidates, tokens),
            by_place=plan.intent is Intent.CROSS_REPO_IMPACT,
            sections_first=plan.intent is Intent.DOCS,
        )
        results = [r.result for r in trace.replies if r.result is not None]
        fused, hidden = settle_documents(fused, [h for r in results for h in r.hidden], [y for r in results for y in r.yields])
        if hidden:
            stage.reason = f"{hidden} places in documents that are not valid now are hidden"
        stage.out = len(fused)
    return fused


async def _take_advice(
    trace: Trace, request: SearchRequest, plan: Plan, fused: list[Fused], facts: Mapping[FileKey, FileFacts]
) -> list[Fused]:
    """The order of those whom the budget's flags let be asked beside the experts. Without a flag nobody is, and nothing is done."""
    if not (request.budget.rerank or request.budget.allow_llm):
        return fused
    until = trace.started + trace.waited + plan.latency_ms / 1000 * (1 - SHARE_TO_PRESENT / 2)
    advised, notes = await take_advice(trace.surroundings.advisers, trace.surroundings.config, request, fused, facts, until, trace.stages)
    trace.notes += notes
    return settle_documents(advised, (), [each for r in trace.replies if r.result is not None for each in r.result.yields])[0]


def _damped(candidates: Sequence[Candidate], tokens: QuestionTokens) -> frozenset[tuple[str, ...]]:
    """Candidates in tests, vendored and generated files, unless the question asks for tests."""
    if TESTING_WORDS.intersection(tokens.content_words):
        return frozenset()
    aside = {path for path in {c.path for c in candidates if c.path is not None} if _is_aside(path)}
    return frozenset(c.key for c in candidates if c.path in aside)


@lru_cache(maxsize=65_536)
def _is_aside(path: str) -> bool:
    """Whether a path is a test's, vendored or generated."""
    return is_test_path(path) or is_vendored_path(path) or is_generated_path(path)


def _present(
    trace: Trace, request: SearchRequest, fused: list[Fused], facts: Mapping[FileKey, FileFacts], start: int
) -> tuple[tuple[Evidence, ...], Cut]:
    around = trace.surroundings
    with trace.stages.run("shape", len(fused)) as stage:
        shaped, hint = shape_ranking(fused, request.expected_shape)
        page = shaped[start : start + request.limit]
        evidence = make_evidence(page, facts, around.cards, request, around.config.output)
        more = max(0, len(shaped) - start - len(page))
        stage.out = len(evidence)
    cursor = next_cursor(request, start + len(page)) if more else None
    hints = [*([f"{more} more"] if more else []), *([hint] if hint else [])]
    return evidence, Cut(items=more, cursor=cursor, hint="; ".join(hints) or None)


def _refused(trace: Trace, error: RequestError) -> Answer:
    status = Status.REJECTED if isinstance(error, RequestRejected) else Status.DECLINED
    fields = tuple(p.field for p in error.problems) if isinstance(error, RequestRejected) else ()
    return trace.answer(status, error=ErrorReport(code=error.code, message=error.message, remedy=error.remedy, fields=fields))


async def _nothing(trace: Trace, projects: tuple[Project, ...], cut: Cut) -> Answer:
    """No evidence: say whether nothing matched, nothing was there to search, or nobody could look."""
    answered = [r for r in trace.replies if r.status in ANSWERED]
    failed = [r for r in trace.replies if r.status not in ANSWERED and r.status is not ExpertStatus.SKIPPED]
    if not answered:
        doubtful = all(r.status is ExpertStatus.SUSPECT_EMPTY for r in failed)
        error = ErrorReport(
            code="all-experts-failed",
            message=("Nothing was found, and absence is not proven: " if doubtful else "No expert could answer: ")
            + "; ".join(f"{r.call.expert} {r.status.value} ({r.reason})" for r in failed)
            + ".",
            remedy=MAKE_READABLE if doubtful else "Raise budget.latency_ms if they timed out, else run `search-router doctor`.",
        )
        return trace.answer(Status.FAILED, empty_reason=EmptyReason.ALL_EXPERTS_FAILED, error=error)
    doubts = [f"{r.call.expert} {r.status.value}" for r in failed]
    doubts += [f"{r.call.expert} has looked at a part" for r in answered if r.result is not None and r.result.partial is not None]
    if doubts:
        trace.notes.append("absence is not proven: " + ", ".join(doubts))
    if trace.dropped:
        trace.notes.append(f"absence is not proven: hits were left out, because their files could not be read ({trace.dropped})")
    if trace.plan is not None and any(e.reason.startswith(ONE_SUFFICES) for e in trace.plan.skipped):
        only = ", ".join(r.call.expert for r in answered)
        trace.notes.append(f'only {only} was asked, for a symbol in a known file; put the name in "quotes" to search the text as well')
    workspace = trace.surroundings.workspace
    try:
        manifests = [await read_manifest(p, nested=workspace.below(p)) for p in projects]
    except ExpertError as error:
        trace.notes.append(f"whether there is any file to search is not known: {error.message}")
        return trace.answer(Status.EMPTY, empty_reason=EmptyReason.NO_MATCHES, cut=cut)
    if not any(m.entries for m in manifests):
        left_out = sum(len(m.left_out) for m in manifests)
        others = f", and {left_out} are links, unreadable or no plain files" if left_out else ""
        trace.notes.append(f"no file here is searchable: there is none, or an ignore rule matches every one{others}")
        return trace.answer(Status.EMPTY, empty_reason=EmptyReason.NO_INDEXED_CONTENT, cut=cut)
    lack = scope_lack(trace.request.scope, [entry.path for m in manifests for entry in m.entries]) if trace.request else None
    if lack is not None:
        trace.notes.append(lack)
        return trace.answer(Status.EMPTY, empty_reason=EmptyReason.NO_INDEXED_CONTENT, cut=cut)
    return trace.answer(Status.EMPTY, empty_reason=EmptyReason.NO_MATCHES, cut=cut)
