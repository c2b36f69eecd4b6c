"""The tuner: priors move with what verified receipts say was used, and with nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.config.loader import LoadedConfig, load_config
from search_router.router.enrich.logged import LogsRefused, QrelsUnusable, Used, read_qrels, read_verified_logs
from search_router.router.enrich.tuned_file import TunedFileError, next_version
from search_router.router.enrich.tuner import FixtureScores, Found, Tuner
from search_router.router.enrich.tuning import MIN_QUESTIONS, SESSION_SHARE, ClassTuning, moved, session_weights, tune
from search_router.router.service import Router
from tests.command_line import run_cli
from tests.receipts.attacks import attack, edit_envelope, edit_payload, sql
from tests.scripted_router import EMBEDDED, environ, hit, scripted_router

PRIORS = {"docs": {"near": 800, "far": 400, "silent": 0}}
NEAR, FAR = ((("near", 1),), (("near", 2),), (("near", 3),)), ((("far", 1),), (("far", 2),))
FLAGS = [f"priors.{intent}.far=0.4" for intent in ("conceptual", "identifier", "typed-symbol", "docs", "unknown", "history")]
SCRIPTS = {
    "near": [{"when": "*", "hits": [hit(), hit("src/app.py", 10)]}],
    "far": [{"when": "*", "hits": [hit("src/twin_a.py", 1), hit("notes.txt", 1)]}],
}
QUESTIONS = ("where does it start", "how is the work begun", "what happens at the start of work")


def answers(count: int, used: Sequence[int], sessions: int, name: str = "s", task_class: str = "docs") -> list[Used]:
    """Pages of near's three items and far's two behind them, of which the items at these 0-based places were used, in turns."""
    rewards = [tuple(float(place == used[n % len(used)]) for place in range(5)) for n in range(count)]
    ids = ("a", "b", "c", "d", "e")
    return [Used(f"{name}:{n}", f"{name}{n % sessions}", task_class, (*NEAR, *FAR), ids, rewards[n]) for n in range(count)]


def test_what_is_used_moves_up_and_the_gain_is_told_with_its_interval() -> None:
    (found,) = tune(answers(80, [3], 12), PRIORS, 60, 10)

    assert found.changed and found.after["far"] > found.after["near"] and found.after["silent"] == 0
    assert found.gain is not None and found.low is not None and found.high is not None and found.p is not None
    assert 0 < found.low <= found.gain <= found.high and found.p < 0.05
    # from place 4 to place 1: 1 - 1/log2(5)
    assert found.gain == pytest.approx(1 - 1 / np.log2(5))


@pytest.mark.behaviour("tuner-believes-only-verified-receipts")
@pytest.mark.parametrize(("count", "sessions"), [(MIN_QUESTIONS - 1, 12), (200, 7)])
def test_too_little_data_changes_nothing_and_says_so(count: int, sessions: int) -> None:
    (found,) = tune(answers(count, [3], sessions), PRIORS, 60, 10)
    assert not found.changed and found.after == PRIORS["docs"] and found.reason.startswith("too little data")


def test_chance_changes_nothing() -> None:
    """Everything on the page is worth the same, and callers look at places as often as the estimate believes."""
    changed = 0
    for seed in range(20):
        dice = random.Random(seed)
        seen = [dice.choices(range(5), weights=[1 / place for place in range(1, 6)])[0] for _ in range(240)]
        (found,) = tune(answers(240, seen, 15), PRIORS, 60, 10)
        changed += found.changed
    assert changed <= 2


def test_one_session_that_lies_moves_nothing_however_much_it_tells() -> None:
    honest, lies = answers(120, [0], 12), answers(5000, [3], 1, "liar")
    (found,) = tune([*honest, *lies], PRIORS, 60, 10)
    assert not found.changed
    (alone,) = tune(lies, PRIORS, 60, 10)
    assert not alone.changed


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=60))
def test_no_session_counts_more_than_its_share(totals: list[float]) -> None:
    counted = np.array(totals) * session_weights(np.array(totals))
    assert counted.max() <= max(SESSION_SHARE, 1 / len(totals)) * counted.sum() * (1 + 1e-6)
    assert (session_weights(np.array(totals)) <= 1).all()


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1000), min_size=1),
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.5, 2)),
    st.integers(0, 50),
)
def test_nobody_is_silenced_or_wakened(priors: dict[str, int], factors: dict[str, float], least: int) -> None:
    after = moved(priors, factors, least)
    for name, prior in priors.items():
        assert after[name] == prior if prior < least else least <= after[name] <= 1000 and after[name] > 0


def test_judgements_are_trec_qrels(tmp_path: Path) -> None:
    file = tmp_path / "qrels"
    file.write_text("log:1 0 code:work:a file.py#x 2\nlog:1 0 b 0\n\nlog:2 0 c 1\n")
    assert read_qrels(file) == {"log:1": {"code:work:a file.py#x": 2, "b": 0}, "log:2": {"c": 1}}
    file.write_text("log:1 0 b\n")
    with pytest.raises(QrelsUnusable, match=":1:"):
        read_qrels(file)


def test_the_next_version_is_a_patch() -> None:
    assert next_version("search-router@1.0.9") == "search-router@1.0.10"


# ------------------------------------------------------------------ real stores


async def use(router: Router, path: str, session: str, outcome: str = "success") -> None:
    """A question, and the outcome of what it found at this path."""
    for question in QUESTIONS:
        answer = await router.search({"question": question, "intent": "docs"}, session=session, principal="local")
        used = [item.id for item in answer.evidence if item.path == path]
        assert answer.receipt is not None and used
        told = {"receipt": answer.receipt.id, "outcome": outcome, "evidence": used}
        assert (await router.report_outcome(told, session=session, principal="local")).error is None


def load(folder: Path) -> LoadedConfig:
    """The configuration of `scripted_router` as a user's file, so that the command line finds it."""
    lines = ['[gate]\ndefault_set = ["far", "near"]\nreserve = {}\n']
    lines += [f"[experts.{name}]\nenabled = false\n" for name in EMBEDDED]
    for name in SCRIPTS:
        lines.append(
            f'[experts.{name}]\nkind = "scripted"\nprecision_class = "lexical"\nengine = "{name}"\ncap_ms = 2000\n'
            f'intents = ["docs"]\nscript = "{folder / name}.json"\n'
        )
    lines.append("[priors.docs] # kept\nnear = 0.8\nfar = 0.4\n")
    env = environ(folder)
    Path(env["SEARCH_ROUTER_CONFIG"]).write_text("\n".join(lines))
    return load_config(roots=[folder / "work"], environ=env)


async def worked(folder: Path, sessions: int, path: str = "src/twin_a.py") -> LoadedConfig:
    """A state directory with the receipts of so many sessions."""
    async with scripted_router(folder, SCRIPTS, flags=[*FLAGS, "enrich.hints=false"]) as router:
        for number in range(sessions):
            for _ in range(2):
                await use(router, path, f"session {number}")
        await router.enrichment.settle()
    return load(folder)


def check(before: float, after: float) -> object:
    return lambda user, tuned, classes: FixtureScores(before, after, 10)


def tuner(loaded: LoadedConfig) -> Tuner:
    return Tuner(loaded, lambda: datetime(2026, 11, 30, tzinfo=UTC))


def docs_of(found: Found) -> ClassTuning:
    return next(each for each in found.classes if each.task_class == "docs")


@pytest.mark.behaviour("tuned-and-worse-is-refused")
@pytest.mark.anyio
async def test_outcomes_become_a_new_version_that_says_where_it_came_from(tmp_path: Path) -> None:
    loaded = await worked(tmp_path, 12)
    found = tuner(loaded).find()
    assert docs_of(found).changed and found.file is not None
    (read,) = found.logged.ranges

    with pytest.raises(TunedFileError, match="worse on the fixtures"):
        tuner(loaded).write(found, check(0.7, 0.69))  # pyright: ignore[reportArgumentType] - a check by hand
    with pytest.raises(TunedFileError, match="not built here"):
        tuner(loaded).write(found, lambda user, tuned, classes: None)
    assert not found.file.place.exists()
    written = tuner(loaded).write(found, check(0.7, 0.71), in_place=True)  # pyright: ignore[reportArgumentType] - a check by hand

    text = written.place.read_text()
    assert f"log {read.log}, receipts 1 to {read.size}, root {read.root}" in text and "2026-11-30" in text and "0.7100 after" in text
    again = load_config(roots=[tmp_path / "work"], environ=environ(tmp_path))
    assert again.version == "search-router@1.0.1"
    docs = again.config.priors[next(i for i in again.config.priors if i.value == "docs")]
    assert docs["far"] > docs["near"] > 0
    assert written.kept is not None and "# kept" in written.kept.read_text()
    assert not again.config.experts["grep"].enabled  # the rest of the user's file is in it


@pytest.mark.behaviour("tuner-believes-only-verified-receipts", "tuned-and-worse-is-refused")
@pytest.mark.anyio
async def test_the_command_shows_writes_and_refuses(tmp_path: Path) -> None:
    await worked(tmp_path, 10)
    arguments = ("tune", "--root", str(tmp_path / "work"))
    shown = run_cli(tmp_path, *arguments, "--dry-run")
    assert shown.code == 0 and b'+version = "search-router@1.0.1"' in shown.stdout and b"priors.docs:" in shown.stdout
    assert not list(tmp_path.glob("search-router@*"))
    told = run_cli(tmp_path, *arguments, "--dry-run", "--json").json
    assert told["written"] is None and any(each["changed"] for each in told["classes"])

    refused = run_cli(tmp_path, *arguments, environ={"XDG_CACHE_HOME": str(tmp_path / "no cache")})
    assert refused.code == 2 and "fixtures are not built" in refused.stderr
    written = run_cli(tmp_path, *arguments, "--unchecked", environ={"XDG_CACHE_HOME": str(tmp_path / "no cache")})
    assert written.code == 0 and b"not checked" in written.stdout
    assert "# fixtures: not checked" in (tmp_path / "search-router@1.0.1.toml").read_text()

    (log,) = (tmp_path / "home" / "receipts").glob("*.sqlite")
    attack(log, edit_envelope(2, edit_payload(b'"session 0"', b'"session 9"')))
    tampered = run_cli(tmp_path, *arguments, "--dry-run")
    assert tampered.code == 1 and "receipts-not-valid" in tampered.stderr and tampered.stdout == b""


@pytest.mark.anyio
async def test_failures_refused_outcomes_and_few_sessions_change_nothing(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS, flags=[*FLAGS, "enrich.hints=false"]) as router:
        await use(router, "src/twin_a.py", "one")
        await use(router, "src/app.py", "two", "failure")
        answer = await router.search({"question": QUESTIONS[0], "intent": "docs"}, session="three", principal="local")
        assert answer.receipt is not None
        lie = {"receipt": answer.receipt.id, "outcome": "success", "evidence": ["code:nowhere"]}
        assert (await router.report_outcome(lie, session="three", principal="local")).error is not None
        read = await router.fetch({"ids": [answer.evidence[0].id]}, session="three", principal="local")
        assert read.items
        await router.enrichment.settle()
    found = tuner(load(tmp_path)).find()

    assert found.file is None and docs_of(found).reason.startswith("too little data: 4 questions of 2 sessions")
    assert [each.rewards for each in found.logged.used if each.session == "local/three"] == [
        tuple(0.5 if n == 0 else 0.0 for n in range(len(answer.evidence)))
    ]


@pytest.mark.anyio
async def test_judgements_take_the_place_of_outcomes(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS, flags=[*FLAGS, "enrich.hints=false"]) as router:
        lines: list[str] = []
        for number in range(MIN_QUESTIONS):
            answer = await router.search({"question": f"{QUESTIONS[0]} {number}", "intent": "docs"}, principal="local")
            (right,) = [item.id for item in answer.evidence if item.path == "src/twin_a.py"]
            assert answer.receipt is not None
            lines.append(f"{answer.receipt.id} 0 {right} 3")
    loaded = load(tmp_path)
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("\n".join(lines))

    assert tuner(loaded).find().file is None
    found = tuner(loaded).find(qrels)

    assert docs_of(found).changed and found.file is not None and "# qrels qrels.txt, sha256 " in found.file.text
    qrels.write_text("0123456789ab:1 0 x 1\n")
    with pytest.raises(QrelsUnusable, match="0123456789ab:1"):
        tuner(loaded).find(qrels)


@pytest.mark.behaviour("tuner-believes-only-verified-receipts")
@pytest.mark.anyio
async def test_a_log_whose_end_was_cut_off_or_that_is_gone_is_refused(tmp_path: Path) -> None:
    loaded = await worked(tmp_path, 2)
    (log,) = loaded.paths.receipts.glob("*.sqlite")
    attack(log, sql("DELETE FROM receipts WHERE seq > 4"))
    with pytest.raises(LogsRefused) as refused:
        read_verified_logs(loaded.paths)
    assert refused.value.exit_code == 1

    log.unlink()  # its checkpoints are still there
    with pytest.raises(LogsRefused) as gone:
        read_verified_logs(loaded.paths)
    assert gone.value.exit_code == 3
