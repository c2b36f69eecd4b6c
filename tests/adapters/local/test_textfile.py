"""Reading one file: containment, hashes, encodings, and line numbers that equal ripgrep's."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.textfile import LONG_LINE, TextFile, _read_and_hash, decode_path, encode_path, read_text_file, split_lines
from search_router.errors import EvidenceError

CAP = 64 * 2**20


def read_bytes(root: Path, data: bytes, *, max_bytes: int = CAP) -> TextFile:
    (root / "file").write_bytes(data)
    return read_text_file(root, "file", max_bytes=max_bytes)


def refusal(root: Path, path: str) -> str:
    with pytest.raises(EvidenceError) as caught:
        read_text_file(root, path, max_bytes=CAP)
    return caught.value.code


# ------------------------------------------------------------------ hashes


@given(data=st.binary(max_size=4000), cap=st.integers(min_value=1, max_value=5000))
def test_hashes_are_of_all_raw_bytes_whatever_the_cap(data: bytes, cap: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = read_bytes(Path(directory), data, max_bytes=cap)
    assert file.content_hash == hashlib.sha256(data).hexdigest()
    assert file.blob == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert file.size == len(data)
    assert ("truncated" in file.flags) == (len(data) > cap)


@pytest.mark.parametrize("data", [b"", b"a\r\nb\n", b"\xff\xfea\0", b"x" * 3_000_000])
def test_the_blob_id_is_gits(tmp_path: Path, data: bytes) -> None:
    file = read_bytes(tmp_path, data)
    printed = subprocess.run(["git", "hash-object", "--no-filters", "file"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert file.blob == printed.decode().strip()


# ------------------------------------------------------------------ text


def test_plain_utf8_has_no_flags(tmp_path: Path) -> None:
    data = "def f():\n    return 'é 漢 🎈'\n".encode()
    assert read_bytes(tmp_path, data) == TextFile(
        text=data.decode(),
        content_hash=hashlib.sha256(data).hexdigest(),
        blob=hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
        encoding="utf-8",
        size=len(data),
    )


def test_an_empty_file_is_empty_text(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, b"")
    assert (file.text, file.flags, split_lines(file.text)) == ("", (), [])


def test_a_utf8_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, b"\xef\xbb\xbfhello\n")
    assert (file.text, file.encoding, file.flags) == ("hello\n", "utf-8", ())


@pytest.mark.parametrize(
    ("encoding", "mark", "flag"),
    [
        ("utf-16-le", b"\xff\xfe", "utf-16"),
        ("utf-16-be", b"\xfe\xff", "utf-16"),
        ("utf-32-le", b"\xff\xfe\0\0", "utf-32"),
        ("utf-32-be", b"\0\0\xfe\xff", "utf-32"),
    ],
)
def test_wide_encodings_are_read_by_their_mark(tmp_path: Path, encoding: str, mark: bytes, flag: str) -> None:
    file = read_bytes(tmp_path, mark + "naïve\r\nline 🎈\n".encode(encoding))
    assert (file.text, file.encoding, file.flags) == ("naïve\nline 🎈\n", encoding, (flag, "crlf"))


def test_half_a_character_at_the_end_of_utf16_does_not_fail_the_file(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, b"\xff\xfea\0b")
    assert (file.text, file.flags) == ("a\ufffd", ("utf-16",))


def test_bytes_that_are_not_utf8_are_read_as_latin_1(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, "größe = 1\n".encode("latin-1"))
    assert (file.text, file.encoding, file.flags) == ("größe = 1\n", "latin-1", ("latin-1",))


def test_a_file_with_a_nul_is_binary_and_has_no_text(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, b"\x7fELF\0\1\2")
    assert (file.text, file.encoding, file.flags) == ("", "binary", ("binary",))


def test_a_ten_megabyte_line_is_read_and_flagged(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, b"x" * 10_000_000)
    assert (len(file.text), file.flags) == (10_000_000, ("long-line",))


@pytest.mark.parametrize(("length", "flags"), [(LONG_LINE, ()), (LONG_LINE + 1, ("long-line",))])
def test_a_line_is_long_only_beyond_the_limit(tmp_path: Path, length: int, flags: tuple[str, ...]) -> None:
    assert read_bytes(tmp_path, b"a\n" + b"x" * length + b"\nb\n").flags == flags


@pytest.mark.parametrize("control", ["\u202a", "\u202e", "\u2066", "\u2069"])
def test_bidi_controls_are_flagged(tmp_path: Path, control: str) -> None:
    assert read_bytes(tmp_path, f"if admin{control}:\n".encode()).flags == ("bidi",)


def test_right_to_left_text_without_controls_is_not_flagged(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, "# שלום عالم\u200f\n".encode()).flags == ()


@pytest.mark.parametrize("cap", range(1, 9))
def test_a_cap_in_the_middle_of_a_character_loses_that_character_only(tmp_path: Path, cap: int) -> None:
    data = "é漢🎈".encode()
    file = read_bytes(tmp_path, data, max_bytes=cap)
    assert "é漢🎈".startswith(file.text)
    assert (file.encoding, file.flags) == ("utf-8", ("truncated",))
    assert file.content_hash == hashlib.sha256(data).hexdigest()


@given(text=st.text(alphabet=st.sampled_from(["a", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])))
def test_only_a_line_feed_ends_a_line(text: str) -> None:
    lines = split_lines(text)
    assert "\n".join(lines) + ("\n" if text.endswith("\n") else "") == text
    assert len(lines) == text.count("\n") + (not text.endswith("\n") and bool(text))


@pytest.mark.skipif(shutil.which("rg", path=Path(sys.executable).parent) is None, reason="ripgrep is not in this environment")
@pytest.mark.parametrize(
    "data",
    [
        b"needle\n\nneedle",
        b"a\rb\nneedle\r\nc\x0bd\n needle \x0c\nneedle",
        "a\u2028b\u0085c\nneedle\n".encode(),
        "größe\nneedle\r\n".encode("latin-1"),
        b"\xff\xfe" + "x\r\nneedle\n".encode("utf-16-le"),
        b"\xef\xbb\xbfneedle\nneedle\n",
        b"needle\r\r\nneedle\n",
    ],
)
def test_line_numbers_equal_ripgreps(tmp_path: Path, data: bytes) -> None:
    file = read_bytes(tmp_path, data)
    rg = str(Path(sys.executable).parent / "rg")
    printed = subprocess.run([rg, "--no-config", "-n", "needle", "file"], cwd=tmp_path, capture_output=True, check=True).stdout
    theirs = [int(line.split(b":")[0]) for line in printed.split(b"\n") if b":" in line]
    assert theirs == [number for number, line in enumerate(split_lines(file.text), 1) if "needle" in line]


# ------------------------------------------------------------------ names and containment


@pytest.mark.parametrize("name", [b"with space", b"quo\"te'", b"new\nline", "🎈漢.py".encode(), b"bad\xff\xfename.py", b"-rf", b":(top)x"])
def test_odd_names_are_read(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("hi\n")
    assert read_text_file(tmp_path, decode_path(name), max_bytes=CAP).text == "hi\n"


@given(name=st.binary())
def test_every_file_name_survives_as_text(name: bytes) -> None:
    assert encode_path(decode_path(name)) == name


@pytest.mark.parametrize(
    "path", ["", ".", "/etc/passwd", "../secret", "a/../../secret", "a/..", "nul\0", "\ud800", ".git/config", ".GIT/config", "a/.git/x"]
)
def test_paths_that_lead_elsewhere_are_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / "a").mkdir()
    (tmp_path / "secret").write_text("s")
    assert refusal(root, path) == "evidence-refused"


def test_links_that_lead_outside_loop_or_reach_into_git_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s").write_text("s")
    (root / "out").symlink_to(tmp_path / "secret" / "s")
    (root / "dir").symlink_to("../secret")
    (root / "git").symlink_to(".git")
    (root / "loop").symlink_to("loop")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    (root / "self").symlink_to(".")
    for path in ("out", "dir/s", "git/config", "loop", "ping", "ping/x", "self"):
        assert refusal(root, path) == "evidence-refused", path


def test_a_sibling_whose_name_starts_with_the_roots_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root-secret").write_text("s")
    (tmp_path / "root" / "link").symlink_to("../root-secret")
    assert refusal(tmp_path / "root", "link") == "evidence-refused"


def test_links_that_stay_inside_are_followed_also_when_the_root_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "real" / "src" / "a.py").write_text("hi\n")
    (tmp_path / "real" / "link.py").symlink_to("src/a.py")
    (tmp_path / "real" / "folder").symlink_to("src")
    (tmp_path / "root").symlink_to("real")
    for path in ("src/a.py", "link.py", "folder/a.py"):
        assert read_text_file(tmp_path / "root", path, max_bytes=CAP).text == "hi\n"


def test_a_missing_file_is_gone_also_when_its_directory_became_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert refusal(tmp_path, "missing") == "evidence-gone"
    assert refusal(tmp_path, "a/b") == "evidence-gone"
    assert refusal(tmp_path / "nowhere", "a") == "evidence-gone"


def test_directories_and_pipes_are_not_read_and_do_not_hang(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path, "folder") == "evidence-unreadable"
    assert refusal(tmp_path, "pipe") == "evidence-unreadable"


def test_a_file_that_grows_while_it_is_read_is_flagged(tmp_path: Path) -> None:
    """A writer appends without pause; one of the reads falls between two of its writes."""
    target = tmp_path / "log"
    target.write_bytes(b"x" * 3_000_000)
    stop = threading.Event()

    def write() -> None:
        with target.open("ab", buffering=0) as stream:
            while not stop.is_set():
                stream.write(b"y")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = any("changing" in read_text_file(tmp_path, "log", max_bytes=CAP).flags for _ in range(50))
    finally:
        stop.set()
        writer.join(timeout=10)
    assert seen


def test_a_file_that_shrinks_while_it_is_read_still_has_its_own_blob_id(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        kept, content_hash, blob = _read_and_hash(descriptor, "file", size=200, max_bytes=300)
    finally:
        os.close(descriptor)
    assert (kept, content_hash) == (b"abc", hashlib.sha256(b"abc").hexdigest())
    assert blob == hashlib.sha1(b"blob 3\0abc").hexdigest()


def test_a_large_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        with pytest.raises(EvidenceError) as caught:
            _read_and_hash(descriptor, "file", size=200, max_bytes=2)
    finally:
        os.close(descriptor)
    assert caught.value.code == "evidence-changing"


def test_a_chain_of_two_thousand_links_does_not_break_the_reader(tmp_path: Path) -> None:
    (tmp_path / "l0").write_text("x")
    for number in range(1, 2000):
        (tmp_path / f"l{number}").symlink_to(f"l{number - 1}")
    assert read_text_file(tmp_path, "l30", max_bytes=CAP).text == "x"
    try:
        assert read_text_file(tmp_path, "l1999", max_bytes=CAP).text == "x"  # newer Pythons resolve it
    except EvidenceError as error:
        assert error.code == "evidence-refused"
