"""Benchmark runs in the console: the list, one run family by family, two against each other, and folders that are not what they seem."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.console.bench_charts import arms_plot, changes_plot, latency_plot, retrieval_plot, selection_plot
from search_router.console.bench_comparing import RunComparer
from search_router.console.bench_folders import MAX_BYTES, RunFolders, RunNotFound, RunsUnavailable, Summary
from search_router.console.bench_reading import NO_FOLDER, NOT_YOURS, SHOWN, BenchReadings
from search_router.console.bench_shapes import figure, tell_comparison, tell_run, tell_view
from tests.console.bench_results import make_run, make_summary, write_summary
from tests.console.consoles import NASTY, TOKEN, Served, console, read_page
from tests.console.test_pages import assert_dressed

pytestmark = pytest.mark.anyio
network = pytest.mark.network
RUNS = "/console/experiments/runs"
API = "/api/experiments/runs"


def flags(folder: Path) -> list[str]:
    return [f'http.bench_results="{folder}"']


async def ids(it: Served) -> dict[str, str]:
    """Folder to id."""
    return {run["folder"]: run["id"] for run in (await it.web.get(API)).json()["runs"]}


@network
async def test_a_run_is_listed_and_its_families_stand_apart_each_with_its_plot(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "before")
    async with console(tmp_path, flags=flags(tmp_path / "runs")) as it:
        (told,) = (await it.web.get(API)).json()["runs"]
        assert (told["folder"], told["name"], told["suite"], told["arms"]) == ("before", "named", "small 1.0.0", ["fused", "grep alone"])
        assert (told["ndcg10"], told["f1_micro"], told["p95_ms"], told["receipts"], told["answers"]) == (1.0, 0.6667, 20.0, 6, 6)
        listed = await it.web.get(RUNS)
        assert f'{RUNS}/{told["id"]}">before</a>' in listed.text
        assert_dressed(listed)
        page = await it.web.get(f"{RUNS}/{told['id']}")
        assert_dressed(page)
        for family in ("Retrieval", "Selection of experts", "Latency", "Receipts, errors and hostile questions"):
            assert f">{family}</h2>" in page.text
        assert page.text.count("<svg") == 4 and "The run is sound" in page.text
        view = (await it.web.get(f"{API}/{told['id']}?arm=grep%20alone")).json()
        assert (view["arm"], [g["name"] for g in view["retrieval"]]) == ("grep alone", ["all", "conceptual", "identifier", "dev", "own"])
        assert view["experts"] == [{"expert": "grep", "right": 3, "extra": 2, "missed": 1}]
        assert [(x["name"], x["limit_ms"]) for x in view["latency"]] == [("warm", 3000), ("identifier", 3000), ("grep", 900)]
        assert (view["breaches"], view["mishandled"]) == ([{"name": "timeout grep", "count": 1}], ["empty-1"])


@network
async def test_two_runs_stand_against_each_other_as_the_command_line_says(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "before")
    make_run(tmp_path / "runs" / "after", ndcg=0.2)
    make_run(tmp_path / "runs" / "other", suite={"name": "other", "version": "2", "manifest": "x", "corpus": "y"})
    async with console(tmp_path, flags=flags(tmp_path / "runs")) as it:
        known = await ids(it)
        a, b, other = known["before"], known["after"], known["other"]
        told = (await it.web.get(f"{API}/comparison?a={a}&b={b}&arm=grep%20alone")).json()
        assert (told["passed"], told["refused"], told["arm"]) == (False, "", "grep alone")
        assert any(r.startswith("ndcg: NDCG@10 of all questions dropped significantly") for r in told["reasons"]), told
        assert {n["group"]: (n["better"], n["worse"]) for n in told["ndcg10"]} == {
            "all": (0, 5),
            "conceptual": (0, 2),
            "identifier": (0, 3),
        }
        assert {"name": "p95 ms", "first": 15.0, "second": 15.0} in told["figures"]
        page = await it.web.get(f"{RUNS}/comparison?a={a}&b={b}&arm=grep+alone")
        assert_dressed(page)
        assert "Failed: something got worse" in page.text and "dropped significantly" in page.text and page.text.count("<svg") == 1
        refused = (await it.web.get(f"{API}/comparison?a={a}&b={other}")).json()
        assert (refused["passed"], refused["ndcg10"]) == (None, []) and "different suites" in refused["refused"]
        page = await it.web.get(f"{RUNS}/comparison?a={a}&b={other}")
        assert_dressed(page)
        assert "Not comparable: " in page.text


async def test_a_comparison_is_remembered_until_a_run_changes_and_one_that_fails_is_an_error(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    folders, comparer = RunFolders(tmp_path), RunComparer()
    at = {f.path.name: f for f in folders.listed()}
    compared = await comparer.compare(at["a"], at["b"], "fused")
    assert compared.said["ndcg10"]["all"]["mean"] == 0.0
    assert await comparer.compare(at["a"], at["b"], "fused") is compared
    (second / "summary.json").write_text(json.dumps(make_summary(packages={"changed": "1"})))
    changed = {f.path.name: f for f in folders.listed()}
    assert changed["b"] != at["b"] and changed["a"] == at["a"]
    (first / "summary.json").write_text('{"place": 1}')
    broken = {f.path.name: f for f in folders.listed()}
    with pytest.raises(RunsUnavailable, match="exit code 1 and no figures"):
        await comparer.compare(broken["a"], broken["b"], "fused")


@network
async def test_names_and_figures_of_others_run_nothing_and_break_no_page(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    hostile = make_summary(run_name=NASTY, started=NASTY, code={"commit": NASTY, "branch": NASTY, "dirty": True}, flags=[NASTY])
    hostile["arms"] = {NASTY: hostile["arms"]["fused"], **hostile["arms"]}
    hostile["arms"]["fused"]["errors"] = {NASTY: 3}
    hostile["arms"]["fused"]["selection"]["by_expert"] = {NASTY: {"right": 1, "extra": 10**400, "missed": -1}}
    hostile["failed"], hostile["emission"]["reasons"] = [NASTY], [NASTY]
    write_summary(runs / """<img src=x onerror=alert(1)>' "&{{7*7}}""", hostile)
    write_summary(Path(os.fsdecode(os.fsencode(runs) + b"/caf\xe9\n--arm=x")), hostile)
    write_summary(runs / "-rf", hostile)
    async with console(tmp_path, flags=flags(runs)) as it:
        known = await ids(it)
        assert len(known) == 3
        listed = await it.web.get(RUNS)
        assert_dressed(listed)
        assert "&lt;img src=x onerror=alert(1)&gt;" in listed.text and "caf\\xe9" in listed.text
        names = list(known.values())
        for run_id in names:
            page = await it.web.get(f"{RUNS}/{run_id}")
            assert page.status_code == 200, page.text[:300]
            assert_dressed(page)
            assert "These figures may not be used" in page.text
            assert (await it.web.get(f"{API}/{run_id}")).status_code == 200
        page = await it.web.get(f"{RUNS}/comparison?a={names[0]}&b={names[1]}")
        assert_dressed(page)
        assert "rows/fused.jsonl cannot be read" in " ".join(read_page(page.text).words)


ODD: tuple[bytes, ...] = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"[" * 100_000,
    b"\xff\xfe",
    b"{}",
    b'{"place": [], "arms": "x", "emission": 1, "failed": {"a": 1}}',
    b'{"arms": {"fused": {"retrieval": {"all": {"ndcg10": NaN, "questions": 1e999}}, "latency": {"warm": {"n": 3, "p50": -Infinity}}}}}',
    b'{"arms": {"fused": 7, "x": {"latency": {"experts": [], "by_class": {"a": null}}, "selection": {"sole": true}}}}',
    b'{"place": {"run_name": "\\ud800"}, "arms": {"fused": {"hostile": {"by_kind": {"\\udcff": "\\ud800"}}}}}',
)


@network
async def test_a_summary_of_any_shape_is_a_page_that_says_so(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number, content in enumerate(ODD):
        (runs / f"r{number}").mkdir(parents=True)
        (runs / f"r{number}" / "summary.json").write_bytes(content)
    async with console(tmp_path, flags=flags(runs)) as it:
        assert_dressed(await it.web.get(RUNS))
        told = (await it.web.get(API)).json()
        assert told["folders"] == len(ODD) == len(told["runs"])
        assert sum(bool(run["unreadable"]) for run in told["runs"]) == 8
        for run in told["runs"]:
            for path in (f"{RUNS}/{run['id']}", f"{API}/{run['id']}"):
                answer = await it.web.get(path)
                assert answer.status_code == 200, (run, answer.text[:300])
                assert_dressed(answer)
            assert (await it.web.get(f"{API}/{run['id']}?arm=no-such-arm")).status_code == 404


def test_only_plain_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    for name in ("pipe", "directory", "socket", "large", "device"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "summary.json")
    (tmp_path / "directory" / "summary.json").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket" / "summary.json"))
    with (tmp_path / "large" / "summary.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (tmp_path / "device" / "summary.json").symlink_to("/dev/zero")
    (tmp_path / "no summary").mkdir()
    (tmp_path / "file").touch()
    folders = RunFolders(tmp_path)
    said = {folder.path.name: folders.summary(folder).unreadable for folder in folders.listed()}
    assert set(said) == {"pipe", "directory", "socket", "large", "device"}
    assert "named pipe" in said["pipe"] and "directory" in said["directory"] and "device" in said["device"]
    assert "socket" in said["socket"] and "more than 8 MiB" in said["large"]


def test_the_newest_runs_come_first_and_a_changed_summary_is_read_again(tmp_path: Path) -> None:
    for number, name in enumerate(("b", "c", "a")):
        os.utime(make_run(tmp_path / name) / "summary.json", ns=(number, number))
    folders = RunFolders(tmp_path)
    assert [f.path.name for f in folders.listed()] == ["a", "c", "b"]
    (newest, *_) = folders.listed()
    assert folders.summary(newest) is folders.summary(newest)
    write_summary(tmp_path / "a", {"place": {"run_name": "again"}})
    (changed, *_) = folders.listed()
    assert folders.summary(changed).facts["place"] == {"run_name": "again"}
    assert folders.find(changed.id) == changed
    with pytest.raises(RunNotFound):
        folders.find("0" * 12)


def test_a_folder_that_is_not_there_has_no_runs_and_one_that_is_none_is_said(tmp_path: Path) -> None:
    assert RunFolders(tmp_path / "nowhere").listed() == []
    (tmp_path / "file").touch()
    with pytest.raises(RunsUnavailable, match="Not a directory"):
        RunFolders(tmp_path / "file").listed()


async def test_more_runs_than_are_shown_are_counted(tmp_path: Path) -> None:
    for number in range(SHOWN + 3):
        write_summary(tmp_path / f"r{number}", make_summary())
    told = await BenchReadings(str(tmp_path), sees_all=True).runs()
    assert (len(told.runs), told.folders) == (SHOWN, SHOWN + 3)


@network
async def test_a_holder_of_the_token_sees_no_run_and_is_told_why(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "secret-name")
    (run,) = RunFolders(tmp_path / "runs").listed()
    async with console(tmp_path, TOKEN, flags=flags(tmp_path / "runs")) as it:
        for path in (f"{API}/{run.id}", f"{API}/comparison?a={run.id}&b={run.id}"):
            assert (await it.web.get(path)).status_code == 401
        await it.log_in()
        assert (await it.web.get(API)).json() == {"runs": [], "folders": 0, "notes": [NOT_YOURS]}
        for path in (f"{API}/{run.id}", f"{API}/comparison?a={run.id}&b={run.id}", f"{RUNS}/{run.id}"):
            answer = await it.web.get(path)
            assert answer.status_code == 404, path
            assert "secret-name" not in answer.text
            assert_dressed(answer)


@network
async def test_without_a_folder_the_page_says_how_to_set_one_and_what_is_wrong_is_said_in_kind(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        page = await it.web.get(RUNS)
        assert NO_FOLDER in page.text
        assert_dressed(page)
        for path, status in (("x", 400), ("0" * 12, 404), ("comparison", 400), (f"comparison?a={'0' * 12}&b=..%2f", 400)):
            for prefix in (RUNS, API):
                answer = await it.web.get(f"{prefix}/{path}")
                assert answer.status_code == status, (prefix, path)
                assert_dressed(answer)
        for arm in ("../../etc/passwd", "-x", "a/b", "a\nb", "a" * 101):
            assert (await it.web.get(f"{API}/{'0' * 12}", params={"arm": arm})).status_code == 400, arm


KEYS = (
    *(
        "place",
        "arms",
        "fused",
        "retrieval",
        "selection",
        "latency",
        "all",
        "by_class",
        "by_expert",
        "experts",
        "warm",
        "hostile",
        "errors",
    ),
    *("ndcg10", "n", "p50", "right", "code", "emission", "failed", "figures", "first", "mean", "error", "by_kind", "sole", "run_name"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=25,
)


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_any_json_is_told_and_drawn_without_an_error(value: Any) -> None:
    summary = Summary(value if isinstance(value, dict) else {}, "")
    run = tell_run("0" * 12, "folder", summary)
    view = tell_view(run, summary, "fused")
    compared = tell_comparison(run, run, "fused", {"ndcg10": value, "figures": value}, 0)
    for svg in (retrieval_plot(view), selection_plot(view), latency_plot(view), arms_plot(view), changes_plot(compared)):
        assert read_page(svg).dangers == [] and "nan" not in svg and "inf" not in svg
    json.dumps(view.model_dump(mode="json"), allow_nan=False)
    json.dumps(compared.model_dump(mode="json"), allow_nan=False)


@settings(deadline=None)
@given(st.floats() | st.integers() | st.text() | st.booleans() | st.none())
def test_a_figure_is_a_finite_number_or_nothing(value: object) -> None:
    told = figure(value)
    assert told is None or (abs(told) <= 1e12 and told == value)
