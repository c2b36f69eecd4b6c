"""What earlier releases wrote is opened and goes on being used; what a newer one wrote is refused with a clear word, and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from search_router.adapters.local.commit_log import CommitLog
from search_router.clients.record import read_record
from search_router.config.drift import FILE_NAME as LAST_RUN
from search_router.receipts.keys import load_or_create_key
from search_router.receipts.pins import read_pins
from search_router.receipts.reading import ReceiptReader
from search_router.router.enrich.database import FILE_NAME as EVENTS
from search_router.router.enrich.database import SCHEMA_VERSION, EnrichUnavailable, open_for_reading, open_for_writing
from search_router.router.opening import open_router
from search_router.schema import Status
from tests.command_line import Ended, run_cli

HERE = Path(__file__).resolve().parent
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "receipts").is_dir())
NEWEST = RELEASES[-1]
EXAMPLE = HERE.parent.parent / "docs/example"
QUESTION = "how does retry of a charge work"


def copied(folder: Path, release: str = NEWEST) -> Path:
    """The release's home, with the modes that it had: a checkout does not keep them."""
    home = folder / "home"
    shutil.copytree(HERE / release, home)
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o644 if path.suffix == ".pub" else 0o600)
    shutil.copytree(EXAMPLE, folder / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    return home


def environ(folder: Path) -> dict[str, str]:
    (folder / "user.toml").touch()
    return {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}


def search(folder: Path) -> Ended:
    return run_cli(folder, "search", QUESTION, "--root", str(folder / "shop"), "--json")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_base_line_is_there() -> None:
    assert "1.0.0" in RELEASES


@pytest.mark.anyio
@pytest.mark.parametrize("release", RELEASES)
async def test_receipts_of_each_release_are_read_and_go_on(tmp_path: Path, release: str) -> None:
    home = copied(tmp_path, release)
    (log,) = (home / "receipts").glob("*.sqlite")
    before = await ReceiptReader(home / "receipts").list(100)
    assert len(before) == 5
    async with open_router(roots=[tmp_path / "shop"], environ=environ(tmp_path)) as router:
        answer = await router.search({"question": QUESTION})
        assert answer.status is Status.ANSWERED
        assert answer.receipt is not None and (answer.receipt.log, answer.receipt.seq) == (log.stem, 6), "it goes on in the same log"
        assert not [note for note in answer.notes if "damaged" in note or "cannot be used" in note]
    verified = run_cli(tmp_path, "receipts", "verify", "--all", "--json")
    assert verified.code == 0, verified.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_keys_pins_memory_and_record_of_each_release_are_read(tmp_path: Path, release: str) -> None:
    home = copied(tmp_path, release)
    before = bytes_of(home / "keys")
    assert load_or_create_key(home / "keys/receipt-ed25519.pem").keyid
    assert bytes_of(home / "keys") == before
    read_pins(home / "pinned-keys.txt")
    (written,) = read_record(home).values()
    assert written.client == "cursor" and written.path == ("mcpServers", "search-router")
    findings = run_cli(tmp_path, "doctor", "--root", str(tmp_path / "shop"), "--json").json
    assert [f["what"] for f in findings if not f["ok"]] in ([], ["expert history"]), "the example is no git repository; all else is fine"


@pytest.mark.parametrize("release", RELEASES)
def test_caches_of_each_release_are_read_or_made_anew_never_a_failure(tmp_path: Path, release: str) -> None:
    home = copied(tmp_path, release)
    for path in (home / "cache").glob("history-*.sqlite"):
        CommitLog(path).close()
    ended = search(tmp_path)
    assert ended.code == 0 and ended.json["evidence"]


@pytest.mark.parametrize("release", RELEASES)
def test_events_of_each_release_are_brought_up_to_date_and_kept(tmp_path: Path, release: str) -> None:
    (path,) = copied(tmp_path, release).rglob(EVENTS)
    count = "SELECT count(*) FROM tool_benchmark_events"
    with sqlite3.connect(path) as before:
        (rows,) = before.execute(count).fetchone()
    before.close()
    after = open_for_writing(path)
    try:
        assert rows > 0 and after.execute(count).fetchone() == (rows,)
        assert after.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    finally:
        after.close()


# ------------------------------------------------------------------ newer than this program


def set_version(path: Path, version: int) -> None:
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()


def newer_log(home: Path) -> Path:
    (path,) = (home / "receipts").glob("*.sqlite")
    set_version(path, 99)
    return path


def newer_checkpoint(home: Path) -> Path:
    (path,) = (home / "checkpoints").glob("*.txt")
    path.write_text(path.read_text().replace("search-router.dev/receipts/", "search-router.dev/receipts-v2/"))
    return path


def newer_pins(home: Path) -> Path:
    path = home / "pinned-keys.txt"
    path.write_text("v2:ed448:" + "0" * 64 + "\n")
    return path


def newer_key(home: Path) -> Path:
    path = home / "keys/receipt-ed25519.pem"
    path.write_bytes(Ed448PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


@pytest.mark.parametrize(
    ("make_newer", "command", "words"),
    [
        pytest.param(newer_log, ("search", QUESTION), ("schema version 99", "Use the newer search-router"), id="receipt log"),
        pytest.param(newer_checkpoint, ("search", QUESTION), ("checkpoint",), id="checkpoints"),
        pytest.param(newer_key, ("search", QUESTION), ("Ed25519",), id="key"),
        pytest.param(newer_pins, ("receipts", "verify", "--all"), ("no key id", "hexadecimal"), id="pins"),
    ],
)
def test_what_a_newer_release_wrote_is_refused_and_not_touched(
    tmp_path: Path, make_newer: Callable[[Path], Path], command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    home = copied(tmp_path)
    path = make_newer(home)
    before = path.read_bytes()
    ended = run_cli(tmp_path, *command, *(("--root", str(tmp_path / "shop")) if command[0] == "search" else ()))
    assert ended.code != 0
    said = ended.stderr + ended.stdout.decode()
    assert all(word in said for word in words), said
    assert path.read_bytes() == before


def test_a_newer_record_of_install_is_refused_and_not_touched(tmp_path: Path) -> None:
    record = copied(tmp_path) / "installed-clients.json"
    record.write_text('{"version": 2, "written": {}}')
    ended = run_cli(tmp_path, "install", "cursor", environ={"HOME": str(tmp_path / "person")})
    assert ended.code == 2 and "this program knows up to 1" in ended.stderr and "or a newer one" in ended.stderr
    assert record.read_text() == '{"version": 2, "written": {}}' and not (tmp_path / "person/.cursor/mcp.json").exists()


def test_events_of_a_newer_release_are_not_touched_and_answers_go_on(tmp_path: Path) -> None:
    (path,) = copied(tmp_path).rglob(EVENTS)
    set_version(path, 99)
    before = path.read_bytes()
    for open_it in (open_for_reading, open_for_writing):
        with pytest.raises(EnrichUnavailable, match="written by a newer search-router"):
            open_it(path)
    ended = search(tmp_path)
    assert ended.code == 0 and ended.json["evidence"]
    assert path.read_bytes() == before


def other_columns(path: Path) -> None:
    """As a later release might lay the tables out under the same name."""
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'")]
        for name in set(tables) & {"derived", "seen", "commits", "changes"}:
            database.execute(f"DROP TABLE {name}")
            database.execute(f"CREATE TABLE {name} (later TEXT)")
        database.execute("PRAGMA user_version = 99")
    database.close()


def test_caches_of_a_newer_layout_are_set_aside_and_made_anew(tmp_path: Path) -> None:
    home = copied(tmp_path)
    names = ("index-1.sqlite3", "vectors-1.sqlite3")
    for name in names:
        other_columns(home / "cache" / name)
    ended = search(tmp_path)
    assert ended.code == 0 and ended.json["evidence"]
    assert all((home / "cache" / f"{name}.damaged").exists() and (home / "cache" / name).exists() for name in names)


def test_a_commit_table_of_a_newer_layout_is_refused_by_name(tmp_path: Path) -> None:
    (path,) = (copied(tmp_path) / "cache").glob("history-*.sqlite")
    other_columns(path)
    before = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="has version 99, and this program knows 2"):
        CommitLog(path)
    assert path.read_bytes() == before


def test_a_memory_of_the_last_configuration_that_is_not_understood_counts_as_none(tmp_path: Path) -> None:
    home = copied(tmp_path)
    (home / LAST_RUN).write_text('{"format": 2, "roots": [["later"]]}')
    ended = search(tmp_path)
    assert ended.code == 0 and "changed since the last run" not in ended.stderr
