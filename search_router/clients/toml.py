"""Small edits in a TOML file that people write: tomlkit keeps comments, order and style, and every edit is read again with tomllib.

Formats: TOML 1.0; the file is Codex's config.toml. tomlkit writes `\\n`; a file with CRLF keeps CRLF.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Generator, Mapping, MutableMapping
from typing import Any, cast

from search_router.clients.jsonc import NotEditable

_LINE = re.compile(r" \(at [^)]*\)$")
_COMMENT = re.compile(r"#[^\r\n]*")


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises NotEditable with the place that is wrong."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise NotEditable("is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        raise NotEditable(f"is not TOML{found[0] if found else ''}") from None
    except ValueError:
        raise NotEditable("has a number that is too long to read") from None


def set_table(text: str, path: tuple[str, str], value: Mapping[str, Any]) -> str:
    """The text with the table `[path[0].path[1]]` in it, in place of one that is there. Raises NotEditable."""
    before = read_toml(text)
    around = before.get(path[0], {})
    if not isinstance(around, dict):
        raise NotEditable(f"has something else than a table under {path[0]}")
    document = _parsed(text)
    with _editing():
        _put(document, path, value)
    return _proven(text, document, {**before, path[0]: {**cast("dict[str, Any]", around), path[1]: dict(value)}})


def remove_table(text: str, path: tuple[str, str], *, made: int) -> str:
    """The text without that table, and without the table around it when `made` says that it was made for it and it is then empty.

    Unchanged when there is none. Raises NotEditable.
    """
    before = read_toml(text)
    around = cast("Any", before.get(path[0]))
    if not isinstance(around, dict) or path[1] not in around:
        return text
    document = _parsed(text)
    with _editing():
        del document[path[0]][path[1]]
    left = {key: value for key, value in cast("dict[str, Any]", around).items() if key != path[1]}
    wanted = {**before, path[0]: left}
    if not left and (made or path[0] not in read_toml(_dumped(text, document))):
        document.pop(path[0], None)
        del wanted[path[0]]
    return _proven(text, document, wanted)


def _parsed(text: str) -> MutableMapping[str, Any]:
    import tomlkit  # loads for some 20 ms, which no other command needs

    with _editing():
        return cast("MutableMapping[str, Any]", tomlkit.parse(text))


def _put(document: MutableMapping[str, Any], path: tuple[str, str], value: Mapping[str, Any]) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    if path[0] not in document:
        document[path[0]] = tomlkit.table(is_super_table=True)
    holder = cast("MutableMapping[str, Any]", document[path[0]])
    table = cast("MutableMapping[str, Any]", tomlkit.inline_table() if isinstance(holder, InlineTable) else tomlkit.table())
    table.update(value)
    holder[path[1]] = table


@contextlib.contextmanager
def _editing() -> Generator[None]:
    """What tomlkit cannot do in a document becomes a refusal."""
    from tomlkit.exceptions import TOMLKitError

    try:
        yield
    except (TOMLKitError, ValueError, KeyError) as error:
        raise NotEditable(f"is TOML that cannot be edited in place ({type(error).__name__})") from None


def _dumped(before: str, document: Any) -> str:
    import tomlkit

    after = tomlkit.dumps(document)
    return re.sub(r"(?<!\r)\n", "\r\n", after) if "\r\n" in before else after


def _proven(before: str, document: Any, wanted: Mapping[str, Any]) -> str:
    """The document's text, if it says what is wanted and has the comments that were there."""
    after = _dumped(before, document)
    if read_toml(after) != wanted or not _keeps(_COMMENT.findall(before), _COMMENT.findall(after)):
        raise NotEditable("is written in a way that cannot be edited without touching something else")
    return after


def _keeps(before: list[str], after: list[str]) -> bool:
    """Whether everything of `before` is in `after`, in this order."""
    rest = iter(after)
    return all(comment in rest for comment in before)
