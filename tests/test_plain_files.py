"""What lies where a file of our own should be, and is no plain file, is named; nothing waits for it, and nothing reads it."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from search_router.plain_files import check_database, open_plain, read_plain
from tests.command_line import run_cli
from tests.repositories import make_repository


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a socket's name is short


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "a named pipe"),
    "socket": (make_socket, "a socket"),
    "directory": (Path.mkdir, "a directory"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_file_that_is_none_is_refused_with_its_kind(tmp_path: Path, kind: str) -> None:
    make, named = ODD[kind]
    make(tmp_path / "state")
    with pytest.raises(OSError, match=f"it is {named} and not a plain file") as caught:
        open_plain(tmp_path / "state")
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(tmp_path / "state"))
    with pytest.raises(sqlite3.DatabaseError, match=f"state: it is {named}"):
        check_database(tmp_path / "state")


@pytest.mark.parametrize("piece", ["-wal", "-shm", "-journal"])
def test_what_sqlite_keeps_beside_a_database_is_looked_at_too(tmp_path: Path, piece: str) -> None:
    check_database(tmp_path / "not-there")
    (tmp_path / "store").touch()
    check_database(tmp_path / "store")
    os.mkfifo(tmp_path / f"store{piece}")
    with pytest.raises(sqlite3.DatabaseError, match=f"store{piece}: it is a named pipe"):
        check_database(tmp_path / "store")


def test_a_plain_file_is_read_whole_or_in_part_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "file") == read_plain(tmp_path / "link") == b"content"
    assert read_plain(tmp_path / "file", 3) == b"con"
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "nothing")


def test_a_pipe_that_the_callers_shell_handed_over_is_read_as_it_is() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"key")
    os.close(writing)
    assert read_plain(Path(f"/dev/fd/{reading}")) == b"key"
    os.close(reading)


# ------------------------------------------------------------------ the product


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A state directory that has one of everything."""
    folder = tmp_path_factory.mktemp("used")
    make_repository(folder / "work", {"a.py": "def victim():\n    return 1\n"})
    for command in (["search", "why was victim changed"], ["search", "how is victim made"], ["receipts", "verify", "--last"]):
        assert run_cli(folder, *command, "--root", "work").code == 0
    yield folder


CASES = {
    "index": ("cache/index-1.sqlite3", ["index", "verify", "--root", "work"], 1, "index-1.sqlite3: it is a named pipe"),
    "index-in-doctor": ("cache/index-1.sqlite3", ["doctor", "--root", "work"], 1, "it is a named pipe and not a plain file"),
    "log": ("receipts/*.sqlite", ["receipts", "verify", "--all"], 3, "it is a named pipe and not a plain file"),
    "log-search": ("receipts/*.sqlite", ["search", "victim", "--root", "work"], 4, "receipts repair"),
    "lock": ("receipts/[0-9a-f]*.lock", ["search", "victim", "--root", "work"], 4, "it is a named pipe and not a plain file"),
    "checkpoints": ("checkpoints/*.txt", ["receipts", "verify", "--all"], 3, "it is a named pipe and not a plain file"),
    "checkpoints-search": ("checkpoints/*.txt", ["search", "victim", "--root", "work"], 4, "The checkpoint file"),
    "public-key": ("keys/receipt-ed25519.pem.pub", ["receipts", "verify", "--last"], 3, "it is a named pipe and not a plain file"),
    "private-key": ("keys/receipt-ed25519.pem", ["search", "victim", "--root", "work"], 4, "is not a regular file"),
    "pins": ("pinned-keys.txt", ["receipts", "verify", "--last"], 3, "it is a named pipe and not a plain file"),
    "last-run": ("last-run.json", ["search", "victim", "--root", "work"], 0, ""),
    "config": ("../user.toml", ["config", "check"], 5, "it is a named pipe and not a plain file"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pipe_in_place_of_a_state_file_is_named_and_nothing_hangs(used: Path, tmp_path: Path, case: str) -> None:
    where, command, code, said = CASES[case]
    shutil.copytree(used, tmp_path, dirs_exist_ok=True, symlinks=True)
    (target,) = (tmp_path / "home").glob(where)
    target.unlink()
    os.mkfifo(target)
    ended = run_cli(tmp_path, *command)
    assert ended.code == code, (ended.stdout, ended.stderr)
    assert said in ended.stderr + ended.stdout.decode()
