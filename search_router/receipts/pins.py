"""The file of pinned keys: which first keys the people of this machine trust. Trust on first use is said aloud by whoever calls."""

from __future__ import annotations

import re
from pathlib import Path

from search_router.errors import KeyUnusable
from search_router.plain_files import read_plain
from search_router.receipts.keys import write_whole

_PIN = re.compile(r"[0-9a-f]{64}")


def read_pins(path: Path) -> frozenset[str]:
    """The key ids in a file of pins, one a line, `#` begins a comment; empty when there is no file.

    Raises:
        KeyUnusable: the file cannot be read, or a line is no key id.
    """
    try:
        lines = read_plain(path).decode("utf-8").splitlines()
    except FileNotFoundError:
        return frozenset()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnusable(f"The file of pinned keys {path} cannot be read: {error}.", remedy="Make it readable.") from error
    pins = {line.partition("#")[0].strip() for line in lines} - {""}
    if wrong := [pin for pin in pins if not _PIN.fullmatch(pin)]:
        raise KeyUnusable(
            f"The file of pinned keys {path} has a line that is no key id: {min(wrong)[:80]!r}.",
            remedy="A key id is the SHA-256 of the raw public key in 64 lower-case hexadecimal digits.",
        )
    return frozenset(pins)


def pin_if_none(pins: Path, keyid: str, where: str) -> bool:
    """Pin a key where nobody has pinned any: trust on first use, which the caller says aloud when this returns True.

    Raises:
        KeyUnusable: the file of pins cannot be read or written.
    """
    if read_pins(pins):
        return False
    try:
        pins.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(pins, f"# first keys of receipt stores that are trusted, one a line\n{keyid}  # {where}\n".encode(), 0o600)
    except OSError as error:
        raise KeyUnusable(
            f"The file of pinned keys {pins} cannot be written: {error.strerror or error}.",
            remedy="Make its directory writable for this user, on a disk with room.",
        ) from error
    return True
