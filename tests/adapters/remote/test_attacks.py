"""Systems that mean harm, or are as broken as if they did: each costs one classified failure, and nothing outside the tree is shown."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from search_router.adapters.remote.presets import load_preset, preset_names
from search_router.adapters.remote.records import MAX_LINE, Unreadable, read_records, short_lines
from search_router.config.loader import load_config
from search_router.config.remote import AnswerConfig
from search_router.errors import ConfigError, ExpertError, FailureClass
from tests.adapters.remote.desk import ITEMS, call_for, config_of, expert_of, stdio_config
from tests.adapters.remote.test_remote_router import QUESTION, router_of

pytestmark = [pytest.mark.anyio, pytest.mark.network]
SITE = Path(__file__).with_name("hostile_site.py")
PYTHON = [sys.executable, "-I", "-S", "-c"]
ANSWER = {"form": "pattern", "pattern": r"^(?P<path>[^:\n]+):(?P<start>\d+):"}
PROTOCOL, TIMEOUT, CRASHED = FailureClass.PROTOCOL_ERROR, FailureClass.TIMEOUT, FailureClass.CRASHED
SPAWN, UNCONFIGURED = FailureClass.SPAWN_FAILED, FailureClass.UNCONFIGURED


async def failure_of(config: Any, root: Path, budget_ms: int = 20_000) -> ExpertError:
    async with expert_of(config) as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(root, budget_ms=budget_ms))
        return caught.value


# ------------------------------------------------------------------ configuration


@pytest.mark.parametrize(
    "text", ["[experts.x\n", "experts = 7\n", "[experts.x]\nkind = 'mcp'\ncommand = 'not an array'\n", "\x00", "a = 1\na = 2\n"]
)
def test_a_file_with_a_slip_is_a_configuration_error_with_its_line(tmp_path: Path, text: str) -> None:
    user = tmp_path / "user.toml"
    user.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path), "SEARCH_ROUTER_CONFIG": str(user)})
    assert str(user) in str(caught.value)


@pytest.mark.parametrize("kind", ["mcp", "command"])
async def test_a_program_that_is_none_is_a_failed_start(tmp_path: Path, kind: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    (tmp_path / "forbidden").write_text("#!/bin/sh\n")
    (tmp_path / "loop").symlink_to("loop")
    more: dict[str, Any] = {} if kind == "mcp" else {"answer": ANSWER}
    for name in ("folder", "text", "forbidden", "loop", "absent"):
        error = await failure_of(config_of(kind, command=[str(tmp_path / name)], **more), tmp_path)
        assert error.failure is SPAWN, (name, str(error))
    error = await failure_of(config_of(kind, command=[sys.executable], cwd=str(tmp_path / "text"), **more), tmp_path)
    assert error.failure is SPAWN, str(error)


async def test_a_key_that_is_named_and_empty_is_as_good_as_absent(tmp_path: Path) -> None:
    config = stdio_config(env={"KEY": "{env:SEARCH_ATTACK_EMPTY}"})
    os.environ["SEARCH_ATTACK_EMPTY"] = ""
    try:
        assert (await failure_of(config, tmp_path)).failure is UNCONFIGURED
        assert (await failure_of(stdio_config(requires_env=["SEARCH_ATTACK_EMPTY"]), tmp_path)).failure is UNCONFIGURED
    finally:
        del os.environ["SEARCH_ATTACK_EMPTY"]


# ------------------------------------------------------------------ processes

FLOOD = "import os\nb = b'x' * 65536\nfor _ in range({megabytes} * 16): os.write(2, b)\n"


async def test_a_server_that_floods_standard_error_is_drained_and_its_tail_kept(tmp_path: Path) -> None:
    code = FLOOD.format(megabytes=200) + "os.write(2, b'last words')\nraise SystemExit(3)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await failure_of(config_of("mcp", command=[*PYTHON, code], start_ms=60_000), tmp_path, 60_000)
    assert error.failure is CRASHED
    assert "code 3" in str(error) and (error.detail or "").endswith("last words") and len(error.detail or "") < 2000
    printed = FLOOD.format(megabytes=200) + "print('src/app.py:4:x')"
    async with expert_of(config_of("command", command=[*PYTHON, printed], answer=ANSWER, cap_ms=60_000)) as expert:
        assert [h.path for h in (await expert.search(call_for(tmp_path, budget_ms=60_000))).hits] == ["src/app.py"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes; nothing of it was kept


async def test_a_child_that_leaves_a_process_behind_and_ends_is_over(tmp_path: Path) -> None:
    leave = "import os, subprocess, sys\nsubprocess.Popen(['sleep', '1000'])\n"
    error = await failure_of(config_of("mcp", command=[*PYTHON, leave + "sys.exit(4)"]), tmp_path)
    assert error.failure is CRASHED and "code 4" in str(error)
    printed = config_of("command", command=[*PYTHON, leave + "print('src/app.py:4:x')"], answer=ANSWER)
    async with expert_of(printed) as expert:
        begun = anyio.current_time()
        assert [h.path for h in (await expert.search(call_for(tmp_path, budget_ms=60_000))).hits] == ["src/app.py"]
        assert anyio.current_time() - begun < 30


async def test_a_server_that_floods_messages_is_no_burden(tmp_path: Path) -> None:
    code = (
        "import json, os, sys\n"
        "first = json.loads(sys.stdin.readline())\n"
        "ping = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}) + chr(10)\n"
        "stray = json.dumps({'jsonrpc': '2.0', 'id': 4711, 'result': {}}) + chr(10)\n"
        "note = json.dumps({'jsonrpc': '2.0', 'method': 'notifications/message'}) + chr(10)\n"
        "while True: os.write(1, ((ping + stray + note) * 100).encode())\n"
    )
    error = await failure_of(config_of("mcp", command=[*PYTHON, code], start_ms=1500), tmp_path, 1500)
    assert error.failure in (PROTOCOL, TIMEOUT)


# ------------------------------------------------------------------ HTTP


@contextmanager
def hostile(attack: str, *more: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
    argv = [sys.executable, "-I", "-S", str(SITE), attack, *more]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process
        finally:
            process.kill()


def kinds(url: str, **more: Any) -> list[Any]:
    headers = {"X-Key": "{env:HOME}"}  # a variable that is always there, in a secret's place
    web = {"url": url, "body": {"question": "{question}"}, "answer": ITEMS, "headers": headers}
    return [config_of("mcp", transport="http", url=url, headers=headers, **more), config_of("http-json", **web)]


async def test_a_redirect_to_another_host_is_not_followed_and_no_key_goes_there(tmp_path: Path) -> None:
    with hostile("html") as (other, other_process), hostile("redirect", f"{other}/stolen") as (url, _):
        for config in [*kinds(url), config_of("mcp", transport="sse", url=url, headers={"X-Key": "{env:HOME}"})]:
            error = await failure_of(config, tmp_path)
            assert error.failure is UNCONFIGURED and "Redirects are not followed" in str(error)
            assert os.environ["HOME"] not in str(error)
        other_process.kill()
        assert other_process.stdout is not None and other_process.stdout.read() == ""


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        ("bomb", (PROTOCOL, PROTOCOL)),
        ("html", (PROTOCOL, PROTOCOL)),
        ("header", (CRASHED, CRASHED)),
        ("short", (CRASHED, CRASHED)),
        ("drip", (TIMEOUT, TIMEOUT)),
        ("lines", (TIMEOUT, TIMEOUT)),
        ("strays", (PROTOCOL, TIMEOUT)),
    ],
)
async def test_each_attack_over_http_is_one_classified_failure_within_its_time_and_without_memory(
    tmp_path: Path, attack: str, expected: tuple[FailureClass, FailureClass]
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with hostile(attack) as (url, _):
        for config, failure in zip(kinds(url), expected, strict=True):
            begun = anyio.current_time()
            error = await failure_of(config, tmp_path, 1500)
            assert error.failure is failure, (config.kind, str(error))
            assert anyio.current_time() - begun < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


# ------------------------------------------------------------------ paths


async def test_nothing_outside_the_tree_is_shown_whatever_a_server_says(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (tmp_path / "secret.txt").write_text("start SECRET-OUTSIDE\n")
    (root / "sub").mkdir(parents=True)
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "out").symlink_to(tmp_path)
    (root / "zero").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    items = [
        "../secret.txt",
        "sub/../../secret.txt",
        "..\\secret.txt",
        str(tmp_path / "secret.txt"),
        f"file://{tmp_path}/secret.txt",
        f"file://localhost{tmp_path}/secret.txt",
        f"file://{root}/../secret.txt",
        "%2e%2e/secret.txt",
        "/etc/passwd",
        "../../../../../../../../../etc/passwd",
        "file:///etc/passwd",
        "file:///%65tc/passwd",
        "/proc/self/environ",
        "link.txt",
        "out/secret.txt",
        "zero",
        "pipe",
        "/dev/stdin",
        "sub",
        ".",
        "",
        "a\x00b",
        "x" * 100_000,
        "~/secret.txt",
        "$HOME/secret.txt",
        "C:\\Windows\\win.ini",
        "//server/share/x",
        "http://example.org/src/app.py",
    ]
    said = json.dumps({"items": [{"path": each, "start": 1, "end": 1} for each in items] + [{"path": "src/app.py", "start": 4, "end": 6}]})
    (tmp_path / "said.json").write_text(said)
    block = {"kind": "command", "command": [sys.executable, "-c", f"print(open({str(tmp_path / 'said.json')!r}).read())"]}
    async with router_of(tmp_path, {"liar": {**block, "cap_ms": 20_000}}) as router:
        with anyio.fail_after(60):
            answer = await router.search({**QUESTION, "limit": 100})
            assert {item.path for item in answer.evidence} == {"src/app.py"}
            shown = answer.model_dump_json() + router.render(answer)
            assert "SECRET-OUTSIDE" not in shown and "root:" not in shown
            dropped = next(stage.reason for stage in answer.stages if stage.stage == "identify")
            assert any(char.isdigit() for char in dropped)


@pytest.mark.parametrize("value", ["1e999", "-1", "1.5", '"9" * 9', "99999999999999999999", "[]", "{}", "true", "null", '"x"', "9" * 400])
async def test_lines_that_are_none_are_no_lines(tmp_path: Path, value: str) -> None:
    text = f'{{"items": [{{"path": "src/app.py", "start": {value}, "end": {value}}}]}}'
    async with expert_of(config_of("command", command=["printf", "%s", text], answer=ITEMS)) as expert:
        try:
            (hit,) = (await expert.search(call_for(tmp_path))).hits
        except ExpertError as error:
            assert error.failure is PROTOCOL  # it is no JSON
        else:
            assert hit.start_line is None or 0 <= hit.start_line < 2**31


async def test_json_that_is_nested_without_end_is_a_protocol_error(tmp_path: Path) -> None:
    code = "print('[' * 100000)"
    error = await failure_of(config_of("command", command=[*PYTHON, code], answer=ITEMS), tmp_path)
    assert error.failure is PROTOCOL


# ------------------------------------------------------------------ patterns

PIECES = [
    "## `a` L1",
    "## `",
    "` — ",
    "1. Code snippet (",
    ") [",
    "]\n  Location: a:1-2\n",
    "- a (b) - ",
    "[a] b:",
    "- title: a, use_cases: ",
    "a:",
    " ",
]


@pytest.mark.parametrize("name", preset_names())
def test_no_text_makes_a_presets_patterns_slow(name: str) -> None:
    for block in load_preset(name).experts.values():
        answer = AnswerConfig.model_validate_json(json.dumps(block["answer"])) if "answer" in block else None
        if answer is None or answer.form != "pattern":
            continue
        for first in PIECES[:5]:
            for piece in PIECES:
                text, _ = short_lines(answer, first + piece * (20_000 // len(piece)))
                begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime
                with contextlib.suppress(Unreadable):
                    read_records(answer, text)
                assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun < 0.5, (first, piece)


async def test_a_careless_pattern_costs_a_bounded_time_and_cut_lines_are_said(tmp_path: Path) -> None:
    answer = {"form": "pattern", "pattern": r"^.*?x.*?:(?P<start>\d+):(?P<path>\S+)$"}
    code = "print('x' * 300000 + chr(10) + 'xx:4:src/app.py')"
    async with expert_of(config_of("command", command=[*PYTHON, code], answer=answer, cap_ms=60_000)) as expert:
        with anyio.fail_after(60):
            result = await expert.search(call_for(tmp_path, budget_ms=60_000))
        assert [h.path for h in result.hits] == ["src/app.py"]
        assert result.notes == ("1 of its lines were cut for being too long",)


def test_only_what_is_beyond_the_limit_of_a_line_is_cut() -> None:
    answer = AnswerConfig.model_validate(ANSWER)
    text = "\n".join(["a" * MAX_LINE, "b" * (MAX_LINE + 1), "c"])
    assert short_lines(answer, text) == ("\n".join(["a" * MAX_LINE, "b" * MAX_LINE, "c"]), 1)
    assert short_lines(answer.model_copy(update={"form": "json"}), text) == (text, 0)
