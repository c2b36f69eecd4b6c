"""Archives are fetched by the registries' own clients: within a time, whole, of the right hash, and with nothing left behind."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import anyio
import pytest

from search_router.benchmark.fixture_archives import Clients, fetch_archive, fetch_archives
from search_router.benchmark.fixture_manifest import Archive
from search_router.benchmark.questions import UnusableData
from tests.adapters.remote.test_mcp_life import wait_until_gone

BYTES = b"the archive"


def archive(name: str = "till", registry: str = "npm") -> Archive:
    row = {"project": name, "registry": registry, "name": name, "version": "1.0", "file": f"{name}-1.0.tgz", "licence": "MIT"}
    return Archive.model_validate(row | {"sha256": hashlib.sha256(BYTES).hexdigest()})


def client(tmp_path: Path, body: str) -> Clients:
    """Registries whose client is this script."""
    script = tmp_path / "client.py"
    script.write_text("import os, pathlib, subprocess, sys, time\n" + body)
    return {"npm": (sys.executable, str(script)), "pypi": (sys.executable, str(script))}


GIVE = f"name = sys.argv[-1].partition('@')[0]\npathlib.Path(name + '-1.0.tgz').write_bytes({BYTES!r})\n"


def test_what_the_client_brought_is_kept_and_not_fetched_again(tmp_path: Path) -> None:
    path = fetch_archive(archive(), tmp_path / "kept", client(tmp_path, GIVE))
    assert path.read_bytes() == BYTES
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["till-1.0.tgz"]
    assert fetch_archive(archive(), tmp_path / "kept", client(tmp_path, "sys.exit(1)\n")) == path


def test_pip_is_told_the_hash_and_to_take_only_this_package_as_source(tmp_path: Path) -> None:
    said = "print(sys.argv[1:], pathlib.Path('wanted.txt').read_text(), file=sys.stderr)\nsys.exit(2)\n"
    with pytest.raises(UnusableData) as caught:
        fetch_archive(archive(registry="pypi"), tmp_path / "kept", client(tmp_path, said))
    assert "'--no-binary', 'till'" in str(caught.value)
    assert f"till==1.0 --hash=sha256:{hashlib.sha256(BYTES).hexdigest()}" in str(caught.value)


def test_other_bytes_never_reach_the_folder(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="SHA-256"):
        fetch_archive(archive(), tmp_path / "kept", client(tmp_path, "pathlib.Path('till-1.0.tgz').write_bytes(b'other')\n"))
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_client_that_hangs_is_ended_in_time_with_what_it_started(tmp_path: Path) -> None:
    child = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)"
    pid = tmp_path / "pid"
    hang = f"subprocess.run([sys.executable, '-c', {child!r}, {str(pid)!r}])\n"
    with pytest.raises(UnusableData, match="was not fetched within 3 s"):
        fetch_archive(archive(), tmp_path / "kept", client(tmp_path, hang), 3.0)
    anyio.run(wait_until_gone, [int(pid.read_text())])
    assert list((tmp_path / "kept").iterdir()) == []


def test_every_archive_that_could_not_be_had_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    some = "if 'ferry' in sys.argv[-1] or 'pier' in sys.argv[-1]:\n    sys.exit('404 ' + sys.argv[-1])\n" + GIVE
    with pytest.raises(UnusableData, match=r"2 of 3 archives.*404 ferry@1\.0.*404 pier@1\.0"):
        fetch_archives([archive("ferry"), archive("till"), archive("pier")], tmp_path / "kept", client(tmp_path, some))
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["till-1.0.tgz"]


def test_no_client_is_started_when_the_time_is_over(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="within 0 s"):
        fetch_archives([archive()], tmp_path / "kept", client(tmp_path, GIVE), 0.0)


def test_a_client_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="no-such-client"):
        fetch_archive(archive(), tmp_path / "kept", {"npm": ("no-such-client",)})
