"""Small edits in a JSON file that people write: comments, trailing commas, indentation, line ends and the order of keys stay as they are.

The text is first laid out as strict JSON of the same length (comments and trailing commas become spaces), so that the standard library's
parser judges it and tells where each value begins and ends; the edit is then made in the text itself. Whatever is written is read again:
it must say exactly what was wanted and still have every comment, or nothing is written. Formats: RFC 8259, and JSON with Comments as
VS Code, Zed and opencode read it (block and line comments, one trailing comma).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

_PIECES = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\r\n]*+|/\*(?:.*?\*/|.*)|,', re.DOTALL)
_VISIBLE = re.compile(r"[^\r\n]")
_CLOSING = re.compile(r"[ \t\r\n]*+[\]}]")
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SPACE = re.compile(r"[ \t\r\n]*+")
_LINE_END = re.compile(r"[ \t]*+,?[ \t]*+[\r\n]")
_WHITE = " \t\r\n"
MAX_INDENT = 8


class NotEditable(ValueError):
    """The text cannot be edited safely; the message says why, without quoting the text."""


class _Member(NamedTuple):
    """One `key: value` of an object: where the key begins, and the half-open range of its value."""

    key: str
    start: int
    value_start: int
    end: int


class _Object(NamedTuple):
    """An object of the text: its braces and its members in reading order."""

    opening: int
    closing: int
    members: tuple[_Member, ...]

    def find(self, key: str) -> _Member | None:
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise NotEditable(f"has the key {key!r} twice")
        return found[0] if found else None


def _no_constant(name: str) -> None:
    raise NotEditable(f"has {name}, which JSON does not have")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class _Laid:
    """A text with its strict layout. `plain` is without comments, `strict` without trailing commas as well; both as long as the text."""

    text: str
    plain: str
    strict: str
    comments: tuple[tuple[int, str], ...]
    value: Any = field(repr=False)

    def object_at(self, opening: int) -> _Object:
        if self.strict[opening] != "{":
            raise NotEditable("has something else where an object is expected")
        members: list[_Member] = []
        at = self._skip(opening + 1)
        while self.strict[at] != "}":
            key, end = _DECODER.raw_decode(self.strict, at)
            start, value_start = at, self._skip(self._skip(end) + 1)
            _, end = _DECODER.raw_decode(self.strict, value_start)
            members.append(_Member(key, start, value_start, end))
            at = self._skip(end)
            if self.strict[at] == ",":
                at = self._skip(at + 1)
        return _Object(opening, at, tuple(members))

    def root(self) -> _Object:
        return self.object_at(self._skip(0))

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.strict, at)
        return found.end() if found else at

    def comments_between(self, start: int, end: int) -> bool:
        return any(start <= at < end for at, _ in self.comments)

    def content_end(self, before: int) -> int:
        """Behind the last character before `before` that is not white space; a comment counts as content."""
        while before > 0 and self.text[before - 1] in _WHITE:
            before -= 1
        return before

    @property
    def newline(self) -> str:
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"

    @property
    def unit(self) -> str:
        found = _INDENTED.search(self.strict)
        if found is None:
            return "  "
        return "\t" if found[1].startswith("\t") else found[1][:MAX_INDENT]

    def indent_of(self, at: int) -> str:
        """The white space that the line of this character begins with."""
        line = self.text.rfind("\n", 0, at) + 1
        end = line
        while end < at and self.text[end] in " \t":
            end += 1
        return self.text[line:end]

    def begins_its_line(self, at: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, at) + 1 : at].strip(" \t")


def read_text(text: str, *, strict: bool) -> Any:
    """The value of a JSON text; `strict` refuses comments and trailing commas. Raises NotEditable with the line that is wrong."""
    return _lay_out(text, strict=strict).value


def set_member(text: str, path: tuple[str, ...], value: Any, *, strict: bool, losing_comments: bool = False) -> str:
    """The text with `value` at this path of keys, made with the objects around it where they are missing; an empty text becomes a document.

    `losing_comments` allows to replace a value that has comments in it.

    Raises:
        NotEditable: the text is not JSON, has something else than objects on the path, a key of the path twice, or the edit cannot be
            proven to change nothing else.
    """
    if not text.strip():
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    laid = _lay_out(text, strict=strict)
    around, depth, member = _locate(laid, path)
    if member is None:
        after = _insert(laid, around, path[depth], _nested(path[depth + 1 :], value))
    else:
        if not losing_comments and laid.comments_between(member.value_start, member.end):
            raise NotEditable(f"has comments inside {'.'.join(path)}, which would be lost")
        rendered = _render(value, laid, laid.indent_of(member.start))
        after = text[: member.value_start] + rendered + text[member.end :]
    _prove(after, _with(laid.value, path, value), laid, losing_comments and member is not None, strict=strict)
    return after


def remove_member(text: str, path: tuple[str, ...], *, made: int, strict: bool, losing_comments: bool = False) -> str:
    """The text without the value at this path, and without the `made` objects around it that are then empty, innermost first.

    Unchanged when there is none. Raises NotEditable as `set_member` does.
    """
    while path:
        laid = _lay_out(text, strict=strict)
        around, depth, member = _locate(laid, path)
        if member is None or depth < len(path) - 1:
            return text
        if not losing_comments and laid.comments_between(member.start, member.end):
            raise NotEditable(f"has comments inside {'.'.join(path)}, which would be lost")
        after = _cut(laid, around, member)
        _prove(after, _without(laid.value, path), laid, losing_comments, strict=strict)
        text, path, made = after, path[:-1], made - 1
        if made < 0 or not path or not _is_bare(text, path, strict=strict):
            return text
    return text


# ------------------------------------------------------------------ reading


def _lay_out(text: str, *, strict: bool) -> _Laid:
    comments: list[tuple[int, str]] = []
    commas: list[int] = []

    def lay(found: re.Match[str]) -> str:
        piece = found[0]
        if piece == ",":
            commas.append(found.start())
        elif piece.startswith("/"):
            if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
                raise NotEditable(f"has a comment without an end at line {text.count(chr(10), 0, found.start()) + 1}")
            comments.append((found.start(), piece))
            return _VISIBLE.sub(" ", piece)
        return piece

    plain = _PIECES.sub(lay, text)
    trailing = [at for at in commas if _CLOSING.match(plain, at + 1) and _follows_a_value(plain, at)]
    if strict and (comments or trailing):
        what, at = ("a comment", comments[0][0]) if comments else ("a trailing comma", trailing[0])
        raise NotEditable(f"has {what} at line {text.count(chr(10), 0, at) + 1}, which this client cannot read")
    layout = _without_commas(plain, trailing) if trailing else plain
    try:
        value = json.loads(layout, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise NotEditable(f"is not JSON: {error.msg} at line {error.lineno}") from None
    except NotEditable:
        raise
    except ValueError:  # an integer of thousands of digits
        raise NotEditable("has a number that is too long to read") from None
    except RecursionError:
        raise NotEditable("is nested too deeply") from None
    return _Laid(text, plain, layout, tuple(comments), value)


def _without_commas(plain: str, commas: list[int]) -> str:
    starts = (0, *(at + 1 for at in commas))
    return " ".join(plain[start:end] for start, end in zip(starts, (*commas, len(plain)), strict=True))


def _follows_a_value(plain: str, comma: int) -> bool:
    at = comma - 1
    while at >= 0 and plain[at] in _WHITE:
        at -= 1
    return at >= 0 and plain[at] not in "[{,:"


def _locate(laid: _Laid, path: tuple[str, ...]) -> tuple[_Object, int, _Member | None]:
    """The innermost object on the path, how many keys lead to it, and the member of the path's last key if it is there."""
    around = laid.root()
    for depth, key in enumerate(path):
        member = around.find(key)
        if member is None or depth == len(path) - 1:
            return around, depth, member
        if laid.strict[member.value_start] != "{":
            raise NotEditable(f"has something else than an object under {'.'.join(path[: depth + 1])}")
        around = laid.object_at(member.value_start)
    raise AssertionError("a path has at least one key")


def _is_bare(text: str, path: tuple[str, ...], *, strict: bool) -> bool:
    """Whether the value at the path is an object without members and without comments in it."""
    laid = _lay_out(text, strict=strict)
    _, _, member = _locate(laid, path)
    return member is not None and not laid.text[member.value_start + 1 : member.end - 1].strip() and laid.strict[member.value_start] == "{"


# ------------------------------------------------------------------ writing


def _render(value: Any, laid: _Laid, indent: str) -> str:
    return json.dumps(value, indent=laid.unit, ensure_ascii=False).replace("\n", laid.newline + indent)


def _insert(laid: _Laid, around: _Object, key: str, value: Any) -> str:
    """The text with one more member at the end of an object, in the style of those before it."""
    text, last = laid.text, around.members[-1] if around.members else None
    outer = laid.indent_of(around.opening)
    indent = laid.indent_of(last.start) if last is not None and laid.begins_its_line(last.start) else outer + laid.unit
    trailing = last is not None and laid.plain.find(",", last.end, around.closing) >= 0
    end = laid.content_end(around.closing)
    member = f"{laid.newline}{indent}{json.dumps(key, ensure_ascii=False)}: {_render(value, laid, indent)}{',' if trailing else ''}"
    rest = text[end : around.closing]
    rest = rest if "\n" in rest else laid.newline + outer
    head = text[:end] if last is None or trailing else text[: last.end] + "," + text[last.end : end]
    return head + member + rest + text[around.closing :]


def _cut(laid: _Laid, around: _Object, member: _Member) -> str:
    """The text without one member, the white space before it, and the comma that is then one too many."""
    index = around.members.index(member)
    start, end = laid.content_end(member.start), member.end
    if any(text.startswith("//") and at + len(text) == start for at, text in laid.comments) and not _ends_its_line(laid, end):
        start = member.start  # or what follows would become part of that comment
    following = laid.plain.find(",", end, around.members[index + 1].start if index + 1 < len(around.members) else around.closing)
    if following >= 0:
        return laid.text[:start] + laid.text[end:following] + laid.text[following + 1 :]
    if index:
        comma = laid.plain.index(",", around.members[index - 1].end)
        if comma < start:
            return laid.text[:comma] + laid.text[comma + 1 : start] + laid.text[end:]
    return laid.text[:start] + laid.text[end:]


def _ends_its_line(laid: _Laid, at: int) -> bool:
    return _LINE_END.match(laid.text, at) is not None


def _prove(after: str, wanted: Any, before: _Laid, losing_comments: bool, *, strict: bool) -> None:
    """Raise unless the new text says what is wanted and has the comments that were there."""
    laid = _lay_out(after, strict=strict)
    kept = [text.rstrip() for _, text in laid.comments] == [text.rstrip() for _, text in before.comments]
    if laid.value != wanted or not (kept or losing_comments):
        raise NotEditable("is written in a way that cannot be edited without touching something else")


def _nested(path: Iterable[str], value: Any) -> Any:
    for key in reversed(tuple(path)):
        value = {key: value}
    return value


def _with(tree: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    table: Mapping[str, Any] = cast("Mapping[str, Any]", tree) if isinstance(tree, dict) else {}
    return {**table, path[0]: _with(table.get(path[0]), path[1:], value)}


def _without(tree: Any, path: tuple[str, ...]) -> Any:
    table = cast("Mapping[str, Any]", tree)
    if len(path) == 1:
        return {key: value for key, value in table.items() if key != path[0]}
    return {**table, path[0]: _without(table[path[0]], path[1:])}
