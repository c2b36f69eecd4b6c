"""Install writes what the client reads and uninstall takes away just that, whatever state the file is in."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from search_router.clients.catalog import BY_ID, CLIENTS, Format, Scope
from search_router.clients.files import KEPT_BACKUPS, MAX_BYTES, directory_locked, read_content, remove_file, replace_content
from search_router.clients.record import FILE_NAME
from search_router.clients.setup import Action, install, uninstall
from search_router.errors import ClientFileError
from tests.clients.machine import COMMAND, Machine
from tests.privileges import needs_readable_checkout
from tests.repositories import directory_of_nobody, unprivileged

IDS = [client.id for client in CLIENTS]
EXISTING = {
    Format.JSON: '{\n  "theme": "dark",\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    Format.JSONC: '// mine\n{\n  "theme": "dark", // night\n}\n',
    Format.TOML: '# mine\nmodel = "m"  # good\n',
}


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("client", IDS)
@pytest.mark.parametrize("scope", list(Scope))
def test_what_was_not_there_is_not_there_afterwards(tmp_path: Path, client: str, scope: Scope) -> None:
    machine = Machine.make(tmp_path)
    if BY_ID[client].project is None and scope is Scope.PROJECT:
        with pytest.raises(ClientFileError, match="no configuration of a project's own"):
            install(BY_ID[client], machine.order(scope), machine.here, machine.state)
        return
    done = install(BY_ID[client], machine.order(scope), machine.here, machine.state)
    assert (done.action, done.path, done.backup) == (Action.ADDED, machine.file(client, scope), None)
    assert "search-router" in done.path.read_text() and stat.S_IMODE(done.path.stat().st_mode) == 0o600
    again = install(BY_ID[client], machine.order(scope), machine.here, machine.state)
    assert (again.action, again.diff, again.backup) == (Action.UNCHANGED, "", None)
    gone = uninstall(BY_ID[client], machine.order(scope), machine.here, machine.state)
    assert gone.action is Action.REMOVED
    assert everything(machine.here.home) == everything(machine.here.project) == {}
    assert list(machine.here.home.iterdir()) == list(machine.here.project.iterdir()) == []
    assert uninstall(BY_ID[client], machine.order(scope), machine.here, machine.state).action is Action.ABSENT


@pytest.mark.parametrize("client", IDS)
def test_a_persons_file_is_the_same_bytes_after_uninstall(tmp_path: Path, client: str) -> None:
    machine = Machine.make(tmp_path)
    before = EXISTING[BY_ID[client].format]
    path = machine.put(client, before)
    path.chmod(0o640)
    done = install(BY_ID[client], machine.order(), machine.here, machine.state)
    assert done.backup is not None and done.backup.read_text() == before
    assert all(line in path.read_text() for line in ("// mine", "// night") if line in before)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(done.backup.stat().st_mode) == 0o640
    uninstall(BY_ID[client], machine.order(), machine.here, machine.state)
    assert path.read_text().strip() == before.strip()
    if BY_ID[client].format is not Format.TOML:
        assert path.read_text() == before


def test_a_dry_run_shows_the_lines_and_changes_nothing(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    machine.put("cursor", '{\n  "mcpServers": {\n    "a": {"command": "x", "env": {"API_KEY": "abcdef-secret"}}\n  }\n}\n')
    before = everything(tmp_path)
    done = install(BY_ID["cursor"], machine.order(dry_run=True), machine.here, machine.state)
    assert done.action is Action.ADDED and '+    "search-router": {' in done.diff
    assert "abcdef-secret" not in done.diff
    assert everything(tmp_path) == before and not machine.state.exists()
    install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
    before = everything(tmp_path)
    assert '-    "search-router": {' in uninstall(BY_ID["cursor"], machine.order(dry_run=True), machine.here, machine.state).diff
    assert everything(tmp_path) == before


def test_only_the_last_copies_are_kept(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    path = machine.put("cursor", "{}")
    for number in range(KEPT_BACKUPS + 3):
        install(BY_ID["cursor"], machine.order(roots=(Path(f"/work/{number}"),)), machine.here, machine.state)
    copies = sorted(entry.name for entry in path.parent.iterdir() if entry != path)
    assert copies == [f"mcp.json.before-search-router.{n}" for n in range(4, 7)]


def test_install_brings_its_own_entry_up_to_date(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    install(BY_ID["zed"], machine.order(command=("/old/search-router",)), machine.here, machine.state)
    done = install(BY_ID["zed"], machine.order(), machine.here, machine.state)
    assert done.action is Action.UPDATED
    assert json.loads(done.path.read_text())["context_servers"]["search-router"]["command"] == COMMAND[0]
    assert uninstall(BY_ID["zed"], machine.order(), machine.here, machine.state).action is Action.REMOVED


def test_an_entry_that_a_person_edited_is_left_alone_until_they_say_so(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    path = install(BY_ID["cursor"], machine.order(), machine.here, machine.state).path
    path.write_text(path.read_text().replace('"serve"', '"serve", "--set", "x=1"'))
    edited = path.read_text()
    for work in (install, uninstall):
        with pytest.raises(ClientFileError, match="was edited since install wrote it"):
            work(BY_ID["cursor"], machine.order(command=("/new",)), machine.here, machine.state)
    assert path.read_text() == edited
    assert uninstall(BY_ID["cursor"], machine.order(force=True), machine.here, machine.state).action is Action.REMOVED
    assert not path.exists()


def test_an_entry_of_somebody_else_is_left_alone_until_they_say_so(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    path = machine.put("cursor", '{"mcpServers": {"search-router": {"command": "mine"}}}')
    for work in (install, uninstall):
        with pytest.raises(ClientFileError, match="install did not write"):
            work(BY_ID["cursor"], machine.order(), machine.here, machine.state)
    assert install(BY_ID["cursor"], machine.order(force=True), machine.here, machine.state).action is Action.UPDATED
    assert uninstall(BY_ID["cursor"], machine.order(), machine.here, machine.state).action is Action.REMOVED
    assert json.loads(path.read_text()) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("before", "where"),
    [
        ('{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}', ("mcp", "servers")),
        ('{"mcp": {"servers": {"type": "local", "command": ["x"]}}}', ("mcp",)),
        ('{"mcp": {"a": {"type": "local", "command": ["x"]}}}', ("mcp",)),
    ],
)
def test_a_file_of_opencode_keeps_its_form(tmp_path: Path, before: str, where: tuple[str, ...]) -> None:
    machine = Machine.make(tmp_path)
    path = machine.put("opencode", before)
    install(BY_ID["opencode"], machine.order(), machine.here, machine.state)
    tree = json.loads(path.read_text())
    for key in where:
        tree = tree[key]
    assert tree["search-router"]["command"][0] == COMMAND[0]
    uninstall(BY_ID["opencode"], machine.order(), machine.here, machine.state)
    assert json.loads(path.read_text()) == json.loads(before)


# ------------------------------------------------------------------ hostile files


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"mcpServers": {', "is not JSON"),
        (b"[1]", "something else where an object"),
        (b'{"mcpServers": []}', "something else than an object"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8"),
        (b"\0\0\0", "is not JSON"),
        (b'{"a": 1} // no comments for this client\n', "which this client cannot read"),
    ],
)
def test_a_broken_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, why: str) -> None:
    machine = Machine.make(tmp_path)
    path = machine.put("claude-code", content)
    before = everything(tmp_path)
    with pytest.raises(ClientFileError, match=why) as caught:
        install(BY_ID["claude-code"], machine.order(), machine.here, machine.state)
    assert str(path) in str(caught.value) and caught.value.remedy
    if "something else" in why:
        assert uninstall(BY_ID["claude-code"], machine.order(), machine.here, machine.state).action is Action.ABSENT
    else:
        with pytest.raises(ClientFileError, match=why):
            uninstall(BY_ID["claude-code"], machine.order(), machine.here, machine.state)
    assert everything(tmp_path) == before


def test_a_byte_order_mark_and_crlf_stay(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    before = b'\xef\xbb\xbf{\r\n\t"servers": {}\r\n}\r\n'
    path = machine.put("vscode", before)
    install(BY_ID["vscode"], machine.order(), machine.here, machine.state)
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf{\r\n\t") and data.count(b"\n") == data.count(b"\r\n")
    uninstall(BY_ID["vscode"], machine.order(), machine.here, machine.state)
    assert json.loads(path.read_bytes().decode("utf-8-sig")) == {"servers": {}}


def test_a_linked_file_is_changed_where_it_is_and_the_link_stays(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    real = tmp_path / "dotfiles" / "codex.toml"
    real.parent.mkdir()
    real.write_text('model = "m"\n')
    link = machine.file("codex")
    link.parent.mkdir()
    link.symlink_to(real)
    done = install(BY_ID["codex"], machine.order(), machine.here, machine.state)
    assert link.is_symlink() and "mcp_servers" in tomllib.loads(real.read_text())
    assert done.backup is not None and done.backup.parent == real.parent
    uninstall(BY_ID["codex"], machine.order(), machine.here, machine.state)
    assert link.is_symlink() and tomllib.loads(real.read_text()) == {"model": "m"}


def test_a_projects_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    target = machine.put("claude-code", "{}")
    (machine.here.project / ".mcp.json").symlink_to(target)
    with pytest.raises(ClientFileError, match="a link out of the project"):
        install(BY_ID["claude-code"], machine.order(Scope.PROJECT), machine.here, machine.state)
    (machine.here.project / ".cursor").symlink_to(machine.here.home)
    with pytest.raises(ClientFileError, match="a link out of the project"):
        install(BY_ID["cursor"], machine.order(Scope.PROJECT), machine.here, machine.state)
    assert target.read_text() == "{}"


def test_links_that_lead_nowhere_pipes_directories_and_huge_files_are_refused(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    path = machine.file("cursor")
    path.parent.mkdir()
    path.symlink_to(path)
    with pytest.raises(ClientFileError):
        install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ClientFileError, match="not a regular file"):
        install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
    path.unlink()
    path.mkdir()
    with pytest.raises(ClientFileError, match="not a regular file"):
        install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
    path.rmdir()
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ClientFileError, match="larger than 16 MiB"):
        install(BY_ID["cursor"], machine.order(), machine.here, machine.state)


def test_a_damaged_or_newer_record_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    machine.state.mkdir()
    record = machine.state / FILE_NAME
    for text, why in (
        ("{", "is damaged"),
        ('{"version": 99, "later": []}', "version 99; this program knows up to 1"),
        ("[]", "is damaged"),
    ):
        record.write_text(text)
        with pytest.raises(ClientFileError, match=why):
            install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
        assert record.read_text() == text and not machine.file("cursor").exists()


@needs_readable_checkout
def test_what_cannot_be_read_or_written_is_refused_with_a_remedy() -> None:
    with directory_of_nobody() as folder, unprivileged(folder):
        machine = Machine.make(folder)
        path = machine.put("cursor", "{}")
        path.chmod(0)
        with pytest.raises(ClientFileError, match=r"Permission denied\. Make it readable"):
            install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
        path.chmod(0o644)
        path.parent.chmod(0o555)
        with pytest.raises(ClientFileError, match=r"Permission denied\. Make its directory writable"):
            install(BY_ID["cursor"], machine.order(), machine.here, machine.state)
        path.parent.chmod(0o755)
        assert everything(machine.here.home) == {".cursor/mcp.json": b"{}"}
        machine.here.home.chmod(0o555)
        with pytest.raises(ClientFileError, match=r"Permission denied\. Make its parent writable"):
            install(BY_ID["gemini-cli"], machine.order(), machine.here, machine.state)
        machine.here.home.chmod(0o755)


CHILD = """
import sys
from pathlib import Path
from search_router.clients.catalog import BY_ID
from search_router.clients.setup import install
from tests.clients.machine import Machine

folder, root = map(Path, sys.argv[1:])
machine = Machine.make(folder)
sys.stdin.readline()
for client in ("cursor", "zed", "codex"):
    install(BY_ID[client], machine.order(roots=(root,)), machine.here, machine.state)
"""


def test_installs_at_once_wait_for_each_other_and_lose_nothing(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    for client in ("cursor", "zed"):
        machine.put(client, '{\n  "kept": true\n}\n')
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    children = [subprocess.Popen([*command, f"/work/{n}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for n in range(3)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        assert child.communicate(timeout=60)[1] == "" and child.returncode == 0
    assert json.loads(machine.file("cursor").read_text())["kept"] is True
    for client in ("cursor", "zed", "codex"):
        assert uninstall(BY_ID[client], machine.order(), machine.here, machine.state).action is Action.REMOVED
    assert json.loads(machine.file("zed").read_text()) == {"kept": True}


def test_a_file_that_its_client_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    seen = read_content(path)
    path.write_text('{"from": "the client"}')
    for change in (lambda: replace_content(path, seen, b"ours"), lambda: remove_file(path, seen)):
        with pytest.raises(ClientFileError, match="changed by another program meanwhile"):
            change()
    assert everything(tmp_path) == {"settings.json": b'{"from": "the client"}'}


def test_a_lock_leaves_no_file_and_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with directory_locked(tmp_path):
            assert list(tmp_path.iterdir()) == []
