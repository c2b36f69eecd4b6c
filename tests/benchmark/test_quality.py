"""Questions to the product itself, in processes of their own: figures, arms, tokens, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark import cross_validation, quality, tokens
from search_router.benchmark.arms import ablation_arms, named_arms, read_weights
from search_router.benchmark.questions import UnusableData, read_questions, read_repositories
from tests.benchmark.small_data import QUESTIONS, make_data
from tests.command_line import run_cli

pytestmark = pytest.mark.heavy


def test_every_question_is_asked_and_the_rankings_are_written_with_paths_of_the_checkout(tmp_path: Path) -> None:
    weights = read_weights(tmp_path / "home", ())
    nothing = ";".join([*weights.others_off(), *(weights.flag(name, 0.0) for name in weights.signals)])
    arms = ["shipped", "codesearch alone", f"nothing:{nothing}"]
    result: dict[str, Any] = quality.run(make_data(tmp_path), arms, out=tmp_path / "run.jsonl")
    shipped = result["arms"]["shipped"]
    assert (result["questions"], result["repositories"]) == (3, 2)
    assert (shipped["ndcg10"], shipped["answered"], shipped["failed_experts"]) == (1.0, 3, {})
    assert shipped["by"]["repo"] == {"shop": 1.0, "tools": 1.0}
    assert result["arms"]["codesearch alone"]["difference"] == 0.0
    assert (result["arms"]["nothing"]["ndcg10"], result["arms"]["nothing"]["answered"]) == (0.0, 0)
    ranked = [json.loads(line) for line in (tmp_path / "run.shipped.jsonl").read_text().splitlines()]
    assert {row["id"]: row["results"][0]["path"] for row in ranked} == {q[0]: q[5] for q in QUESTIONS}
    assert (tmp_path / "run.codesearch-alone.jsonl").exists()


def test_the_ablation_takes_every_signal_damping_and_expert_of_the_configuration(tmp_path: Path) -> None:
    weights = read_weights(tmp_path, ())
    arms = {arm.name: arm.flags for arm in ablation_arms(weights)}
    for name, value in weights.signals.items():
        assert (f"no {name}" in arms) is (value > 0)
        if value > 0:
            assert read_weights(tmp_path, arms[f"no {name}"]).signals == {**weights.signals, name: 0.0}
            only = read_weights(tmp_path, arms[f"only {name}"])
            assert only.signals == {**dict.fromkeys(weights.signals, 0.0), name: 1.0}
            assert only.others == ()
    both = read_weights(tmp_path, arms["no path, no vector"])
    assert both.signals == {**weights.signals, "path": 0.0, "vector": 0.0} and both.others == weights.others
    beside = read_weights(tmp_path, arms["only path and vector"])
    assert beside.signals == {**dict.fromkeys(weights.signals, 0.0), "path": 1.0, "vector": weights.signals["vector"]}
    assert all(stage not in read_weights(tmp_path, arms[f"stage {stage} off"]).stages for stage in weights.stages)
    assert list(arms)[:3] == ["shipped", "no vector", "codesearch alone"]
    assert set(read_weights(tmp_path, arms["no damping"]).dampings.values()) == {0.0}
    assert all(other not in read_weights(tmp_path, arms[f"without {other}"]).others for other in weights.others)


def test_arms_that_are_not_done_in_time_are_named_and_have_no_figures(tmp_path: Path) -> None:
    """The first arm is asked everything whatever the time, so that there is something to compare with."""
    result: dict[str, Any] = quality.run(make_data(tmp_path), ["shipped", "codesearch alone", "flat:output.snippet_lines=1"], seconds=0.001)
    assert (list(result["arms"]), result["not_in_time"]) == (["shipped"], ["codesearch alone", "flat"])
    assert (result["arms"]["shipped"]["ndcg10"], result["arms"]["shipped"]["without_vectors"]) == (1.0, 0)
    quality.print_figures(result)


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnusableData, match="no arm 'fast'"):
        named_arms(["fast"], [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", r"questions\.jsonl:1: id"),
        ('{"id": "1"', r"questions\.jsonl:1: the line"),
        ("\n", "has no question"),
    ],
)
def test_a_faulty_question_file_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(UnusableData, match=said):
        read_questions(path)


def test_a_question_about_a_repository_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    data = make_data(tmp_path)
    data.repositories.write_text("[]")
    with pytest.raises(UnusableData, match="shop, tools"):
        read_repositories(data.repositories, read_questions(data.questions))


def test_the_command_prints_json_and_a_missing_checkout_is_one_line(tmp_path: Path) -> None:
    data = make_data(tmp_path)
    options = ["--questions", str(data.questions), "--repositories", str(data.repositories)]
    ended = run_cli(tmp_path, "bench", "quality", *options, "--checkouts", str(data.checkouts), "--repos", "tools,", "--json")
    assert (ended.code, ended.json["questions"], ended.json["arms"]["shipped"]["ndcg10"]) == (0, 1, 1.0)
    (tmp_path / "nowhere").mkdir()
    ended = run_cli(tmp_path, "bench", "quality", *options, "--checkouts", str(tmp_path / "nowhere"))
    assert (ended.code, ended.stderr.count("\n")) == (2, 1)
    assert "unusable-data" in ended.stderr and "shop" in ended.stderr


def test_fitted_weights_are_judged_on_what_was_left_out(tmp_path: Path) -> None:
    result: dict[str, Any] = cross_validation.run(make_data(tmp_path))
    assert (result["questions"], result["targets_in_pools"]) == (3, 1.0)
    assert result["shipped"]["ndcg10"] == 1.0
    assert (result["left_out"]["repository"]["folds"], result["left_out"]["language"]["folds"]) == (2, 2)
    assert all(0 <= each["only"] <= 1 for each in result["signals"].values())
    assert result["fitted_in_sample"]["weights"] == result["shipped"]["weights"]  # nothing could be gained


def test_a_target_is_inside_the_tokens_that_its_item_ends_in(tmp_path: Path) -> None:
    result: dict[str, Any] = tokens.run(make_data(tmp_path), ["shipped", "short:output.snippet_lines=1"])
    shipped, short = result["arms"]["shipped"], result["arms"]["short"]
    assert shipped["any"] == dict.fromkeys(("500", "1000", "2000", "4000"), 1.0)
    assert short["tokens_an_answer"]["p50"] < shipped["tokens_an_answer"]["p50"]
    assert result["exact"] is result["tokens"].startswith("cl100k")
