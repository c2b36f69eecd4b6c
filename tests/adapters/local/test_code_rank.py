"""The ranking follows its formula, and does not depend on how the files are spread over segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.adapters.local.code_fields import Fields, centrality
from search_router.adapters.local.code_index import ProjectCode, find_legacy
from search_router.adapters.local.code_plan import SearchPlan, plan_search
from search_router.adapters.local.code_rank import Admitted, Known, RankedFile, rank_files
from search_router.adapters.local.code_scope import admit_files
from search_router.adapters.local.code_segment import Floats, Segment, SegmentFile
from search_router.adapters.local.code_stages import StageTally
from search_router.adapters.local.code_terms import derive_terms, pack_terms
from search_router.adapters.local.symbol_packing import compact_syntax
from search_router.adapters.local.symbol_table import IndexedFile
from search_router.adapters.local.syntax import Extracted
from search_router.config.experts import CodeSearchConfig, CodeSearchStages, CodeSearchWeights
from search_router.schema import ExpertCall, Intent, PrecisionClass, QueryForm, SubQuery

Files = dict[str, str]
WEIGHTS = CodeSearchWeights(
    strong=0.4, decayed=0.4, body=0.4, path=0.8, names=0.3, comments=0.3, stem=0.5, path_cover=0.8, name_cover=0.6, definition=1.0,
    size=0.4, central=0.4, vector=0.4,
    test_damping=0.5, prose_damping=0.3, foreign_damping=0.3, legacy_damping=0.5, internal_damping=0.1,
)  # fmt: skip
NONE = CodeSearchWeights.model_validate(dict.fromkeys(CodeSearchWeights.model_fields, 0.0))
VOCABULARY = ("jar", "cookie", "parse", "socket", "retry", "token", "cache")


def segment(files: Files) -> Segment:
    return Segment([SegmentFile(path, derive_terms(text, "python", [])) for path, text in files.items()])


def indexed(files: Files) -> dict[str, IndexedFile]:
    empty = compact_syntax(Extracted((), ()))
    return {p: IndexedFile(p, "python", f"blob of {t}", "", empty, pack_terms(derive_terms(t, "python", []))) for p, t in files.items()}


def configuration(weights: CodeSearchWeights = WEIGHTS, **stages: Any) -> CodeSearchConfig:
    return CodeSearchConfig(
        kind="codesearch",
        precision_class=PrecisionClass.HYBRID,
        engine="code-index",
        intents=(Intent.CONCEPTUAL,),
        cap_ms=2500,
        weights=weights,
        stages=CodeSearchStages.model_validate(stages),
    )


def plan_for(
    question: str, weights: CodeSearchWeights = WEIGHTS, limit: int = 50, names: tuple[str, ...] = (), **stages: Any
) -> SearchPlan:
    form = QueryForm.SYMBOL if names else QueryForm.TEXT
    call = ExpertCall("codesearch", SubQuery(form, names, question), (), None, None, limit, 1000, 900, "a test")
    return plan_search(call, configuration(weights, **stages))


def cosines(similar: Mapping[str, float] | None) -> Callable[[tuple[str, ...]], Floats] | None:
    return None if similar is None else lambda paths: np.array([max(0.0, similar.get(path, 0.0)) for path in paths], np.float32)


def rank(
    segments: tuple[Segment, ...],
    question: str,
    weights: CodeSearchWeights = WEIGHTS,
    limit: int = 50,
    similar: Mapping[str, float] | None = None,
    **stages: Any,
) -> list[RankedFile]:
    admitted = Admitted([np.ones(len(s), np.bool_) for s in segments], [np.ones(len(s), np.float32) for s in segments])
    plan = plan_for(question, weights, limit, **stages)
    return rank_files(Fields(segments), plan, admitted, Known(centrality(segments), {}, cosines(similar)), StageTally(plan))


def rank_project(code: ProjectCode, question: str, **stages: Any) -> list[RankedFile]:
    plan = plan_for(question, **stages)
    tally = StageTally(plan)
    return rank_files(code.fields, plan, admit_files(code, plan, tally), Known(code.central, {}), tally)


@pytest.mark.parametrize("signal", ["body", "decayed", "strong"])
def test_bm25_is_that_of_the_formula(signal: str) -> None:
    files = {"a.py": "plum plum fig", "b.py": "plum nut nut nut nut", "c.py": "kiwi"}
    plum, kiwi = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)  # two and one of three files have the word; 3 words on average
    first = kiwi * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 3))
    second = plum * 2 * 2.2 / (2 + 1.2)
    third = plum * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 5 / 3))
    expected = {"c.py": 1.0, "a.py": second / first, "b.py": third / first}
    if third / first < 0.3 and signal == "strong":
        del expected["b.py"]
    ranked = rank((segment(files),), "plum kiwi", NONE.model_copy(update={signal: 1.0}))
    assert {r.path: r.score for r in ranked} == pytest.approx(expected, abs=1e-5)


def test_the_best_chunk_is_shown() -> None:
    text = "\n".join(["x = 1"] * 70 + ["retry_token = 2"] + ["x = 3"] * 9)
    assert [r.chunk for r in rank((segment({"a.py": text}),), "retry token")] == [(51, 80)]


def test_equal_files_come_by_path_and_a_limit_keeps_the_first() -> None:
    files = {f"{name}.py": "cookie jar" for name in "dbca"}
    whole = [r.path for r in rank((segment(files),), "cookie")]
    assert whole == ["a.py", "b.py", "c.py", "d.py"]
    assert [r.path for r in rank((segment(files),), "cookie", limit=2)] == whole[:2]
    base, delta = segment({k: files[k] for k in ("d.py", "a.py")}), segment({k: files[k] for k in ("b.py", "c.py")})
    assert [r.path for r in rank((base, delta), "cookie", limit=3)] == whole[:3]


def test_a_question_that_meets_nothing_finds_nothing() -> None:
    assert rank((segment({"a.py": "cookie"}),), "zebra") == [] and rank((segment({}),), "zebra") == [] and rank((), "zebra") == []


def test_vectors_reorder_what_words_find_and_find_nothing_themselves() -> None:
    segments = (segment({"a.py": "cookie jar", "b.py": "cookie jar", "c.py": "socket"}),)
    ranked = rank(segments, "cookie", similar={"a.py": -0.5, "b.py": 0.2, "c.py": 0.8})
    assert [r.path for r in ranked] == ["b.py", "a.py"]
    assert ranked[0].score - ranked[1].score == pytest.approx(WEIGHTS.vector * 0.2 / 0.8, abs=1e-5)
    assert [r.signals["vector"] for r in ranked] == [0.25, 0.0]
    assert [r.path for r in rank(segments, "cookie")] == ["a.py", "b.py"]


texts = st.lists(st.sampled_from((*VOCABULARY, "cookieJar", "\n", "# retry")), max_size=12).map(" ".join)
paths = st.sampled_from(
    [f"{folder}{name}.py" for folder in ("", "api/v1/", "api/v2/", "tests/", "vendor/") for name in ("jar", "parse", "token", "main")]
)
corpora = st.dictionaries(paths, texts, max_size=9)


def same(found: list[RankedFile], expected: list[RankedFile]) -> None:
    """Equal scores by path, and an order that differs at most where scores are equal."""
    assert {r.path: r.score for r in found} == pytest.approx({r.path: r.score for r in expected}, abs=1e-4)
    assert [r.score for r in found] == pytest.approx([r.score for r in expected], abs=1e-4)
    chunks: Mapping[str, object] = {r.path: r.chunk for r in expected}
    assert all(chunks[r.path] == r.chunk for r in found)
    assert found == sorted(found, key=lambda r: (-r.score, r.path))


@settings(max_examples=60)
@given(corpora, corpora, st.sets(paths), st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3))
def test_one_segment_or_more_rank_alike(before: Files, edits: Files, gone: set[str], words: list[str]) -> None:
    after = {p: t for p, t in (before | edits).items() if p not in gone}
    question = " ".join(words)
    code = ProjectCode().successor(indexed(before), 1)
    old = rank_project(code, question)
    step = code.successor(indexed(before | edits), 2)
    rank_project(step, question)
    found = rank_project(step.successor(indexed(after), 3), question)
    same(found, rank_project(ProjectCode().successor(indexed(after), 1), question))
    assert {r.path for r in found} <= after.keys()
    back = step.successor(indexed(after), 3).successor(indexed(before), 4).successor(indexed(after), 5)
    same(rank_project(back, question), found)
    assert rank_project(code, question) == old, "what is being read is not changed by its successor"


def test_going_back_to_what_was_builds_no_segment() -> None:
    here = {f"file{number}.py": f"cookie jar {number}" for number in range(60)}
    there = here | {f"file{number}.py": f"token {number}" for number in range(15)}
    code = ProjectCode().successor(indexed(here), 1).successor(indexed(there), 2)
    built = [id(segment.body) for segment in code.segments]
    for generation in range(3, 9):
        files = indexed(here if generation % 2 else there)
        code = code.successor(files, generation)
        assert [id(segment.body) for segment in code.segments] == built
        same(rank_project(code, "token jar"), rank_project(ProjectCode().successor(files, 1), "token jar"))


def test_one_saved_file_makes_a_small_segment_however_the_index_came_to_be() -> None:
    """A cold index arrives in parts; the first, small one must not stay the base on which everything else is made anew at every save."""
    files: Files = {}
    code = ProjectCode()
    for part in range(10):
        files |= {f"part{part}/file{number}.py": f"cookie jar {part} {number}" for number in range(20)}
        code = code.successor(indexed(files), part)
    assert sum(len(s) for s in code.segments) == len(files)
    for save in range(30):
        code = code.successor(indexed(files | {"part0/file0.py": f"saved {save}"}), 100 + save)
        assert len(code.segments[-1]) < 8
    assert len(code.segments) <= 4
    assert next(r.path for r in rank_project(code, "saved 29")) == "part0/file0.py"


def test_centrality_counts_files_and_not_chunks() -> None:
    files = {"jar.py": "x", "a.py": "jar\n" * 200, "b.py": "jar", "c.py": "y", **{f"f{n}.py": "z" for n in range(12)}}
    code = ProjectCode().successor(indexed(files), 1)
    (segment,), (central,) = code.segments, code.central
    assert central[segment.paths.index("jar.py")] == pytest.approx(4 * 2 / 16)


def test_a_folder_becomes_legacy_when_its_successor_appears() -> None:
    files = {"api/v1/jar.py": "cookie jar", "jar.py": "cookie"}
    code = ProjectCode().successor(indexed(files), 1)
    before = {r.path: r.score for r in rank_project(code, "cookie")}
    later = code.successor(indexed(files | {"api/v2/other.py": "socket"}), 2)
    after = {r.path: r.score for r in rank_project(later, "cookie")}
    assert after["api/v1/jar.py"] < 0.8 * before["api/v1/jar.py"]


@pytest.mark.parametrize(
    ("files", "legacy"),
    [
        (["api/v1/a.py", "api/v2/a.py"], {"api/v1": True, "api/v2": False}),
        (["V1/a.py", "V2/a.py"], {"V1": True, "V2": False}),
        (["p/v1/a.py", *(f"p/{n}.py" for n in range(5))], {"p/v1": True}),
        (["p/v1/a.py", "p/b.py"], {"p/v1": False}),
        (["v²/a.py", "values/a.py", "v1.py"], dict[str, bool]()),
    ],
)
def test_version_folders_are_judged_by_what_stands_beside_them(files: list[str], legacy: dict[str, bool]) -> None:
    assert find_legacy(dict.fromkeys(files)) == legacy
