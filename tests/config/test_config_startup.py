"""Start-up is a feature: what is imported when, how long a load takes, and that the packaged file says everything."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from pathlib import Path

import search_router.config
from search_router.config.keys import Table, as_table, value_at
from search_router.config.schema import Config
from search_router.config.shape import EXPERT_MODELS, child_keys
from tests.config.conftest import Desk

HEAVY = ("tree_sitter", "tree_sitter_toml", "platformdirs", "mcp", "anyio")


def _run(code: str, desk: Desk) -> list[str]:
    program = f"import sys, pathlib\nHEAVY = {HEAVY!r}\nseen = lambda: ','.join(m for m in HEAVY if m in sys.modules) or '-'\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=desk.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return done.stdout.split()


def test_a_start_without_mistakes_loads_nothing_heavy_until_a_line_is_asked_for(desk: Desk) -> None:
    desk.write_user("fusion.k = 5")
    code = f"""
from search_router.config.loader import load_config
print(seen())
loaded = load_config(roots=[pathlib.Path({str(desk.root)!r})], environ={desk.environ()!r})
print(seen())
print(loaded.origin['fusion.k'].line, seen())
"""
    assert _run(code, desk) == ["-", "-", "1", "tree_sitter,tree_sitter_toml"]


def test_a_load_takes_less_than_ten_milliseconds(desk: Desk) -> None:
    desk.write_user("[budget]\nlatency_ms = 5")
    desk.write_project("[fusion]\nk = 5")
    desk.load()
    taken: list[float] = []
    for _ in range(20):
        started = time.process_time()
        desk.load({"SEARCH_ROUTER__HTTP__PORT": "1"}, ["gate.min_prior=0.5"])
        taken.append(time.process_time() - started)
    assert min(taken) < 0.010


def _packaged() -> Table:
    return tomllib.loads((Path(search_router.config.__file__).parent / "default.toml").read_text(encoding="utf-8"))


def test_the_packaged_file_documents_every_key_of_the_schema() -> None:
    packaged = _packaged()
    assert set(packaged) == set(Config.model_fields)
    for section in Config.model_fields:
        keys = child_keys((section,), packaged)
        if section not in ("version", "experts"):
            assert set(as_table(packaged[section]) or {}) == set(keys), section
    for name, block in packaged["experts"].items():
        assert set(block) == set(EXPERT_MODELS[block["kind"]].model_fields), name


def test_the_packaged_file_uses_every_kind_but_the_test_double_and_other_peoples_systems() -> None:
    elsewhere = {"scripted", "mcp", "command", "http-json", "milvus"}
    assert {block["kind"] for block in _packaged()["experts"].values()} == set(EXPERT_MODELS) - elsewhere


def test_the_packaged_defaults_are_those_of_the_schema_where_it_has_any(desk: Desk) -> None:
    packaged = _packaged()
    for section, model in ((name, Config.model_fields[name].annotation) for name in Config.model_fields):
        for key, field in getattr(model, "model_fields", {}).items():
            if not field.is_required():
                default = field.get_default(call_default_factory=True)
                assert value_at(packaged, (section, key)) == (list(default) if isinstance(default, tuple) else default), (section, key)
