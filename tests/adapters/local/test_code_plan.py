"""The search plan: made from question and configuration alone, each stage a switch of its own that is reported, and with the packaged
settings the ranking that was there before there was a plan."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.adapters.local.code_index import ProjectCode
from search_router.adapters.local.code_plan import Stage, file_hints
from search_router.adapters.local.code_rank import Known, RankedFile, rank_files
from search_router.adapters.local.code_scope import admit_files
from search_router.adapters.local.code_stages import OFF, StageTally
from search_router.adapters.local.codesearch import CodeSearchExpert
from search_router.adapters.local.edge_packing import pack_edges
from search_router.adapters.local.edges import FileEdges
from search_router.adapters.local.import_statements import Import
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.symbol_table import IndexedFile
from search_router.config.experts import CodeSearchStages
from search_router.schema import ExpertCall, ExpertResult, Hit, Project, QueryForm, StageFacts, SubQuery
from tests.adapters.local.made_files import QUESTIONS, made_files
from tests.adapters.local.test_code_rank import (
    NONE,
    WEIGHTS,
    Files,
    configuration,
    corpora,
    indexed,
    plan_for,
    rank,
    rank_project,
    segment,
)
from tests.repositories import write_files

EARLIER = Path(__file__).parent / "samples" / "codesearch_orders.json"
SWITCHES = {stage: stage.value.replace("-", "_") for stage in Stage}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for the project and its index, which is made once."""
    return tmp_path_factory.mktemp("made")


@asynccontextmanager
async def expert_over(folder: Path, **stages: Any) -> AsyncGenerator[tuple[CodeSearchExpert, Project]]:
    root = folder / "made"
    if not root.exists():
        write_files(root, made_files())
    index = SymbolIndex(DerivedStore(folder / "cache"), max_file_bytes=1 << 16, workers=1)
    expert = CodeSearchExpert("codesearch", configuration(**stages), index)
    try:
        yield expert, Project("made", root, "directory")
    finally:
        await expert.aclose()


async def ask(expert: CodeSearchExpert, project: Project, question: str, limit: int = 12) -> ExpertResult:
    names = () if " " in question else (question,)
    sub_query = SubQuery(QueryForm.SYMBOL if names else QueryForm.TEXT, names, question)
    return await expert.search(ExpertCall("codesearch", sub_query, (project,), None, None, limit, 20_000, 900, "a test"))


def shown(hit: Hit) -> str:
    return f"{hit.path}:{hit.start_line}-{hit.end_line} {hit.symbol or '-'} {hit.native_score:.3f}"


def report_of(result: ExpertResult, stage: Stage) -> StageFacts:
    (found,) = [each for each in result.stages if each.stage == stage]
    return found


@pytest.mark.anyio
async def test_the_packaged_stages_rank_as_the_code_did_before_there_was_a_plan(folder: Path) -> None:
    earlier = json.loads(EARLIER.read_text("utf-8"))
    async with expert_over(folder) as (expert, project):
        for question in QUESTIONS:
            assert [shown(hit) for hit in (await ask(expert, project, question)).hits] == earlier[question]


@pytest.mark.anyio
async def test_every_stage_that_is_on_reports_and_every_one_that_is_off_says_so(folder: Path) -> None:
    async with expert_over(folder) as (expert, project):
        result = await ask(expert, project, "parse_cookie")
    count = len(made_files())
    assert [each.stage for each in result.stages] == [stage.value for stage in Stage]
    assert {each.stage: each.active for each in result.stages} == {stage: stage not in (Stage.VECTORS, Stage.SUMMARIES) for stage in Stage}
    assert report_of(result, Stage.ENTITY_FILTER)[3:5] == (count, len(result.hits))
    assert report_of(result, Stage.DEFINITIONS).in_ == 1
    assert report_of(result, Stage.VECTORS).reason == "no vectors are configured"
    assert "chunks are not above" in report_of(result, Stage.SUMMARIES).reason
    async with expert_over(folder, **dict.fromkeys(SWITCHES.values(), False)) as (expert, project):
        result = await ask(expert, project, "parse_cookie")
    assert [(each.active, each.reason) for each in result.stages] == [(False, OFF)] * len(Stage)
    assert result.hits == ()


@pytest.mark.anyio
@pytest.mark.parametrize("stage", list(Stage), ids=str)
async def test_switching_one_stage_off_takes_its_effect_and_no_other(folder: Path, stage: Stage) -> None:
    kept: dict[bool, list[RankedFile]] = {True: [], False: []}
    results: dict[bool, ExpertResult] = {}
    question = "parse_cookie" if stage in (Stage.ENTITY_FILTER, Stage.DEFINITIONS) else "tests of the router cache in core"
    for on in (True, False):
        async with expert_over(folder, **{SWITCHES[stage]: on}) as (expert, project):
            expert.on_ranked = lambda _, ranked, into=kept[on]: into.extend(ranked)
            results[on] = await ask(expert, project, question, limit=200)
    assert report_of(results[False], stage)[1:3] == (False, OFF)
    others = [(a.stage, a.active, b.active) for a, b in zip(results[True].stages, results[False].stages, strict=True) if a.stage != stage]
    assert all(before == after for _, before, after in others)
    before, after = ({r.path: r for r in kept[on]} for on in (True, False))
    match stage:
        case Stage.ENTITY_FILTER:
            assert before.keys() < after.keys()
        case Stage.DAMPING:
            assert {r.damping for r in after.values()} == {1.0} and min(r.damping for r in before.values()) < 1.0
        case Stage.SUMMARIES | Stage.VECTORS:
            assert [shown(hit) for hit in results[True].hits] == [shown(hit) for hit in results[False].hits]
        case _:
            gone = {"files": {"path"}, "structure": {"stem"}, "definitions": {"definition"}, "chunks": {"strong", "decayed", "body"}}[stage]
            assert all(gone <= r.signals.keys() for r in before.values()) and not any(gone & r.signals.keys() for r in after.values())


def test_a_plan_is_a_frozen_value_made_from_question_and_configuration_alone() -> None:
    plan = plan_for("how does parse_cookie in net/cookie.py handle tests", names=("parse_cookie",))
    assert plan == plan_for("how does parse_cookie in net/cookie.py handle tests", names=("parse_cookie",))
    assert (plan.names, plan.required, plan.hints) == (("parse_cookie",), frozenset({"parsecookie"}), ("net/cookie.py",))
    assert plan.factors == {"test": 1, "prose": 0.7, "foreign": 0.7, "legacy": 0.5, "internal": 0.9}
    assert plan.stages == frozenset(Stage) and plan.limit == 50
    assert not plan_for("x", structure=False).runs(Stage.STRUCTURE)
    with pytest.raises(FrozenInstanceError):
        plan.limit = 3  # pyright: ignore[reportAttributeAccessIssue] - that it fails is the test


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        ("what does core/cache.py do", ("core/cache.py",)),
        ("retry.py and ./net/pool.go", ("retry.py", "net/pool.go")),
        ("everything below src/adapters/local", ("src/adapters/local",)),
        ("see Makefile.am, version 1.2.3, e.g. parse.cookie", ("Makefile.am",)),
        ("how is a cookie parsed", ()),
    ],
)
def test_paths_and_names_of_files_in_a_question_are_hints(question: str, hints: tuple[str, ...]) -> None:
    assert file_hints(question) == hints


def test_a_hint_brings_the_file_and_its_folder_forward_where_it_has_a_weight() -> None:
    files: Files = {f"{folder}/cookie.py": "cookie jar" for folder in ("a", "b", "c/d", "e")}
    hinted = WEIGHTS.model_copy(update={"hint": 1.0})
    assert rank((segment(files),), "cookie in b/cookie.py", hinted)[0].path == "b/cookie.py"
    assert rank((segment(files),), "cookie in c/d", hinted)[0].signals["hint"] == 0.5
    assert "hint" not in rank((segment(files),), "cookie in b/cookie.py")[0].signals
    assert WEIGHTS.hint == 0.0


def test_vectors_find_alone_when_nothing_else_may() -> None:
    files: Files = {"a.py": "cookie", "b.py": "socket"}
    found = rank(
        (segment(files),), "zebra", similar={"b.py": 0.4, "a.py": 0.1}, files=False, structure=False, definitions=False, chunks=False
    )
    assert [r.path for r in found] == ["b.py", "a.py"]
    assert rank((segment(files),), "zebra", similar={"b.py": 0.4}) == []


# ------------------------------------------------------------------ file summaries first

MANY: Files = {
    f"f{number}/{'cookie' if number == 7 else 'other'}{number}.py": "x = 1\n" * (60 + number) + "cookie jar\n" for number in range(40)
}


def test_above_the_threshold_only_the_best_files_are_looked_into() -> None:
    code = ProjectCode().successor(indexed(MANY), 1, 0)
    whole = rank_project(code, "cookie jar")
    few = rank_project(code, "cookie jar", summaries_above=0, summary_files=10)
    assert len(whole) == 40 and len(few) == 10 and few[0].path == "f7/cookie7.py"
    assert len(rank_project(code, "cookie jar", summaries_above=79, summary_files=10)) < 40
    assert rank_project(code, "cookie jar", summaries_above=80, summary_files=10) == whole
    assert rank_project(code, "cookie jar", summaries_above=0, summary_files=10, summaries=False) == whole


@pytest.mark.anyio
async def test_the_report_of_summaries_says_that_they_ran(folder: Path) -> None:
    async with expert_over(folder, summaries_above=10, summary_files=10) as (expert, project):
        result = await ask(expert, project, "flush the buffer of a worker")
        named = await ask(expert, project, "LedgerMerge")
    stage = report_of(result, Stage.SUMMARIES)
    assert (stage.active, stage.in_) == (True, len(made_files()))
    assert stage.reason == f"chunks are searched in the best {stage.out} files" and 10 <= stage.out < stage.in_
    assert report_of(result, Stage.CHUNKS).in_ == stage.out >= len(result.hits)
    assert result.hits[0].path == "core/worker.py"
    assert not report_of(named, Stage.SUMMARIES).active and "in the scope" in report_of(named, Stage.SUMMARIES).reason


def test_what_a_file_imports_is_a_part_of_its_summary() -> None:
    files = indexed(MANY)
    edges = pack_edges(FileEdges(imports=(Import(1, "jar.store", "jar", "jar"),)))
    old = files["f20/other20.py"]
    files["f20/other20.py"] = IndexedFile(old.path, old.language, old.blob, old.content_hash, old.syntax, old.terms, edges)
    only_names = NONE.model_copy(update={"names": 1.0, "decayed": 1.0, "size": 0.1})

    def best(imports_above: int | None) -> set[str]:
        code = ProjectCode().successor(files, 1, imports_above)
        plan = plan_for("jar", only_names, summaries_above=0, summary_files=10)
        tally = StageTally(plan)
        return {r.path for r in rank_files(code.fields, plan, admit_files(code, plan, tally), Known(code.central, {}), tally)}

    assert "f20/other20.py" not in best(None), "without imports the ten longest files are looked into"
    assert "f20/other20.py" in best(0) and len(best(0)) == 10


@settings(max_examples=40, deadline=None)
@given(corpora, st.lists(st.sampled_from(("jar", "cookie", "parse", "retry")), min_size=1, max_size=3))
def test_summaries_of_as_many_files_as_there_are_change_nothing(files: Files, words: list[str]) -> None:
    code = ProjectCode().successor(indexed(files), 1, 0)
    assert rank_project(code, " ".join(words), summaries_above=0, summary_files=10) == rank_project(code, " ".join(words))


def test_the_packaged_threshold_is_far_above_an_ordinary_repository() -> None:
    assert CodeSearchStages().summaries_above >= 200_000
