"""The install, uninstall, completion and --version commands, as a shell starts them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.command_line import Ended, run_cli

CLIENT_VARIABLES = ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA")


def run(folder: Path, *arguments: str) -> Ended:
    home = folder / "user"
    home.mkdir(exist_ok=True)
    return run_cli(folder, *arguments, environ={"HOME": str(home), **dict.fromkeys(CLIENT_VARIABLES)})


def test_without_a_client_it_tells_which_are_here_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "user/.gemini").mkdir(parents=True)
    told = {row["client"]: row["found"] for row in run(tmp_path, "install", "--json").json}
    assert len(told) == 9 and told["gemini-cli"]
    assert ".gemini" in run(tmp_path, "install").stdout.decode()
    assert not (tmp_path / "home").exists()


def test_install_and_uninstall_of_two_clients(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "gemini-cli", "codex", "--root", str(tmp_path), "--json").json
    assert [(row["client"], row["action"]) for row in done["clients"]] == [("gemini-cli", "added"), ("codex", "added")]
    entry = json.loads((tmp_path / "user/.gemini/settings.json").read_text())["mcpServers"]["search-router"]
    assert Path(entry["command"]).is_absolute() and entry["args"][-3:] == ["serve", "--root", str(tmp_path)]
    assert run(tmp_path, "install", "codex", "--root", str(tmp_path)).stdout.decode().startswith("Codex CLI: unchanged")
    gone = run(tmp_path, "uninstall", "gemini-cli", "codex")
    assert gone.code == 0 and gone.stdout.decode().count("removed") == 2
    assert not (tmp_path / "user/.gemini").exists() and not (tmp_path / "user/.codex").exists()


def test_a_dry_run_prints_the_lines(tmp_path: Path) -> None:
    shown = run(tmp_path, "install", "zed", "--dry-run").stdout.decode()
    assert "Zed: would be added" in shown and '+    "search-router": {' in shown
    assert not (tmp_path / "user/.config").exists()


def test_one_client_that_is_refused_does_not_stop_the_others_and_the_exit_code_tells(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user/.claude.json").write_text("{")
    ended = run(tmp_path, "install", "claude-code", "claude-desktop", "cursor")
    assert ended.code == 2
    assert "Claude Code: refused:" in ended.stderr and "is not JSON" in ended.stderr and "--root DIR" in ended.stderr
    assert ended.stdout.decode().startswith("Cursor: added")
    assert (tmp_path / "user/.claude.json").read_text() == "{"


def test_a_value_given_for_a_variable_is_refused_and_not_repeated(tmp_path: Path) -> None:
    ended = run(tmp_path, "install", "cursor", "--env", "TOKEN=sk-a-secret-value")
    assert ended.code == 2 and "name alone, without a value" in ended.stderr
    assert "sk-a-secret-value" not in ended.stderr + ended.stdout.decode()


def test_all_takes_those_that_are_here_and_have_the_scope(tmp_path: Path) -> None:
    for name in (".cursor", ".config/Claude"):
        (tmp_path / "user" / name).mkdir(parents=True)
    (tmp_path / "project").mkdir()
    done = run(tmp_path, "install", "--all", "--scope", "project", "--project", str(tmp_path / "project"), "--json").json
    assert "claude-desktop" not in {row["client"] for row in done["clients"]}
    assert (tmp_path / "project/.cursor/mcp.json").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_completion(tmp_path: Path, shell: str) -> None:
    script = run(tmp_path, "completion", shell).stdout.decode()
    assert f"_SEARCH_ROUTER_COMPLETE={shell}_complete" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=10)


def test_completion_knows_the_commands_and_the_clients(tmp_path: Path) -> None:
    def complete(words: str, at: int) -> str:
        variables = {"_SEARCH_ROUTER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return run_cli(tmp_path, launcher=("-c", MAIN), environ=variables).stdout.decode()

    assert "plain,uninstall" in complete("search-router unins", 1)
    assert "plain,claude-code" in complete("search-router install clau", 2)


MAIN = "import sys; sys.argv[0] = 'search-router'; from search_router.__main__ import main; main()"


def test_the_version_tells_the_build_and_the_configuration(tmp_path: Path) -> None:
    said = run(tmp_path, "--version").stdout.decode()
    assert said.startswith("search-router 0.1.0")
    assert "configuration search-router@" in said
    top = Path(__file__).resolve().parent.parent
    if (top / ".git").exists():
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=top, capture_output=True, text=True, check=True).stdout
        assert commit[:12] in said
