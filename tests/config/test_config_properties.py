"""For any overrides in any layers, the strongest layer that mentions a key gives its value and is its origin."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.config.keys import dotted, show_value, value_at
from search_router.config.layers import NOTHING, LayerName, lay_over
from search_router.config.loader import LoadedConfig, load_config
from search_router.config.sources import parse_value
from tests.config.conftest import make_desk

_weights = st.integers(0, 1000).map(lambda mille: mille / 1000)
VALUES: dict[tuple[str, ...], st.SearchStrategy[object]] = {
    ("budget", "latency_ms"): st.integers(1, 600_000),
    ("fusion", "k"): st.integers(1, 1000),
    ("fusion", "definition_bonus"): _weights,
    ("gate", "one_expert_suffices"): st.booleans(),
    ("gate", "default_set"): st.lists(st.sampled_from(["grep", "symbols", "history"]), max_size=3),
    ("experts", "grep", "cap_ms"): st.integers(1, 600_000),
    ("experts", "symbols", "languages"): st.lists(st.text("abc #\"'\\\n", max_size=5), max_size=2),
    ("priors", "typed-symbol", "grep"): _weights,
    ("workspace", "submodules"): st.booleans(),
}
LAYERS = (LayerName.USER, LayerName.PROJECT, LayerName.ENVIRONMENT, LayerName.FLAGS)
_overrides = st.fixed_dictionaries({layer: st.fixed_dictionaries({}, optional=VALUES) for layer in LAYERS})
Overrides = dict[LayerName, dict[tuple[str, ...], object]]


def _load(place: Path, overrides: Overrides) -> LoadedConfig:
    desk = make_desk(place)
    lines = {layer: [f"{dotted(path)} = {show_value(value)}" for path, value in values.items()] for layer, values in overrides.items()}
    desk.write_user("\n".join(lines[LayerName.USER]))
    desk.write_project("\n".join(lines[LayerName.PROJECT]))
    variables = {
        f"SEARCH_ROUTER__{'__'.join(path).upper().replace('-', '_')}": show_value(value)
        for path, value in overrides[LayerName.ENVIRONMENT].items()
    }
    return load_config(roots=[desk.root], environ=desk.environ(variables), flags=lines[LayerName.FLAGS])


@settings(max_examples=60, deadline=None)
@given(_overrides)
def test_the_strongest_layer_gives_the_effective_value(overrides: Overrides) -> None:
    with tempfile.TemporaryDirectory() as place:
        loaded = _load(Path(place) / "a", overrides)
        effective = loaded.config.model_dump(mode="json")
        strongest: dict[tuple[str, ...], object] = {}
        for path in VALUES:
            setters = [layer for layer in LAYERS if path in overrides[layer]]
            origin = loaded.origin[dotted(path)]
            assert origin.layer is (setters[-1] if setters else LayerName.DEFAULT)
            if setters:
                strongest[path] = overrides[setters[-1]][path]
                assert value_at(effective, path) == strongest[path]
            if setters and setters[-1] in (LayerName.USER, LayerName.PROJECT):
                assert origin.line == list(overrides[setters[-1]]).index(path) + 1

        nothing: Overrides = {layer: {} for layer in LAYERS}
        assert _load(Path(place) / "b", nothing | {LayerName.FLAGS: strongest}).hash == loaded.hash


_tables = st.recursive(st.integers(0, 9), lambda below: st.dictionaries(st.sampled_from("abcd"), below, max_size=3), max_leaves=8).filter(
    lambda value: isinstance(value, dict)
)


@given(_tables, _tables)
def test_laying_over_keeps_what_the_stronger_layer_does_not_mention(weak: dict[str, object], strong: dict[str, object]) -> None:
    weak_before, strong_before = repr(weak), repr(strong)
    merged = lay_over(lay_over(NOTHING, weak, 0), strong, 1)
    assert (repr(weak), repr(strong)) == (weak_before, strong_before)
    assert lay_over(merged, strong, 1) == merged
    for name, value in weak.items():
        if name not in strong:
            assert merged.tree[name] == value
            assert merged.origins[(name,)] == 0
    for name, value in strong.items():
        assert merged.origins[(name,)] == 1
        if not isinstance(value, dict):
            assert merged.tree[name] == value


@given(st.text())
def test_any_text_is_a_value_and_never_more_than_one(text: str) -> None:
    value = parse_value(text)
    assert value == text or not isinstance(value, str) or text.strip()[:1] in ("'", '"')


@given(st.one_of(st.integers(-(2**53), 2**53), st.booleans(), st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.booleans())))
def test_a_value_that_is_shown_is_read_back_as_the_same(value: object) -> None:
    assert parse_value(show_value(value)) == value
