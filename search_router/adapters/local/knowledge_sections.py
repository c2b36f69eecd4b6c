"""A document's text as sections: under its headings where it has any, else whatever its lines are. Line scanners, no renderer.

A heading is real or None; nothing is made up. `trail` are the headings above a section's own, outermost first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_HEADING: Final = 200
_LONGEST: Final = 4 * MAX_HEADING  # of a heading with its markup
FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "md": "markdown",
        "markdown": "markdown",
        "mdx": "markdown",
        "rst": "rst",
        "adoc": "asciidoc",
        "asciidoc": "asciidoc",
        "org": "org",
        "txt": "text",
        "ipynb": "notebook",
        "html": "html",
        "htm": "html",
        "pdf": "pdf",
    }
)
_BARE_NAMES: Final = frozenset({"readme", "changelog", "changes", "contributing", "news", "history"})

_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r"^ {0,3}(=+|-{3,})[ \t]*$")
_ADORNMENT = re.compile(r"^([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*$")
_ASCIIDOC = re.compile(r"^(={1,6})[ \t]+(\S.*?)[ \t]*=*$")
_ASCIIDOC_BLOCK = re.compile(r"^(-{4,}|\.{4,}|={4,}|`{3,}|\+{4,}|_{4,})$")
_ORG = re.compile(r"^(\*{1,8})[ \t]+(\S.*?)[ \t]*(?::[\w@:]+:)?$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")


class Section(NamedTuple):
    """One part of a document: 1-based closed lines of the file as it is, and its text."""

    heading: str | None
    trail: tuple[str, ...]
    start: int
    end: int
    text: str


@lru_cache(maxsize=65_536)
def document_format(path: str) -> str | None:
    """Which kind of document a path is by its name; None for what is none."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    return FORMATS.get(extension) if dot and stem else "text" if name in _BARE_NAMES else None


def read_sections(text: str, kind: str, first_line: int = 1) -> list[Section]:
    """The sections of a document in reading order; `first_line` is where its body begins, after the front matter.

    Raises:
        ValueError: it is no document of this kind; it says why.
    """
    lines = text.split("\n")
    if kind == "notebook":
        return _notebook(text)
    if kind == "html":
        return _html(text, len(lines))
    return _by_headings(lines, list(_HEADINGS[kind](lines, first_line)), first_line)


class _Heading(NamedTuple):
    """`line` is where its section begins (with an overline, that), `body` the first line below it."""

    line: int
    body: int
    level: int
    text: str


def plain_heading(text: str) -> str:
    """A heading without its markup."""
    return _LINK.sub(r"\1", text[:_LONGEST]).replace("`", "").replace("**", "").strip()[:MAX_HEADING]


def _by_headings(lines: Sequence[str], headings: Sequence[_Heading], first_line: int) -> list[Section]:
    sections: list[Section] = []
    open_above: list[tuple[int, str]] = []
    before = headings[0].line - 1 if headings else len(lines)
    _add(sections, None, (), lines, first_line, first_line, before)
    for at, heading in enumerate(headings):
        while open_above and open_above[-1][0] >= heading.level:
            open_above.pop()
        end = headings[at + 1].line - 1 if at + 1 < len(headings) else len(lines)
        _add(sections, heading.text, tuple(text for _, text in open_above), lines, heading.line, heading.body, end)
        open_above.append((heading.level, heading.text))
    return sections


def _add(
    sections: list[Section], heading: str | None, trail: tuple[str, ...], lines: Sequence[str], start: int, body: int, end: int
) -> None:
    while end >= body and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[body - 1 : end])
    if heading is not None or text.strip():
        while heading is None and start < end and not lines[start - 1].strip():
            start += 1
        sections.append(Section(heading, trail, start, max(start, end, body - 1 if heading is not None else 0), text))


def _markdown(lines: Sequence[str], first: int) -> Iterator[_Heading]:
    fence = ""
    for number in range(first, len(lines) + 1):
        line = lines[number - 1]
        if found := _FENCE.match(line):
            mark = found[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and line.strip() == mark:
                fence = ""
            continue
        if fence:
            continue
        if (found := _ATX.match(line)) and found[2]:
            yield _Heading(number, number + 1, len(found[1]), plain_heading(found[2]))
        elif number > first and (found := _SETEXT.match(line)) and _can_be_title(lines, number - 1, first):
            yield _Heading(number - 1, number + 1, 1 if found[1][0] == "=" else 2, plain_heading(lines[number - 2]))


def _can_be_title(lines: Sequence[str], number: int, first: int) -> bool:
    """Whether line `number` stands alone above an underline and is no list, quote or table."""
    text = lines[number - 1]
    alone = number == first or not lines[number - 2].strip()
    return alone and bool(text.strip()) and not re.match(r"\s*(?:[-*+>|]|\d+\.)\s?|\s{4}", text)


def _rst(lines: Sequence[str], first: int) -> Iterator[_Heading]:
    """Titles with an underline at least as long as they are; a style's level is its order of appearance (docutils' rule)."""
    styles: list[str] = []
    number = first
    while number <= len(lines):
        line = lines[number - 1]
        over = _ADORNMENT.match(line)
        if over and number + 2 <= len(lines) and lines[number].strip() and lines[number + 1].rstrip() == line.rstrip():
            yield _rst_heading(styles, f"{over[1]}{over[1]}", number, number + 3, lines[number])
            number += 3
            continue
        under = _ADORNMENT.match(lines[number]) if number < len(lines) else None
        if under and line.strip() and not line[:1].isspace() and not over and len(lines[number].rstrip()) >= len(line.rstrip()):
            yield _rst_heading(styles, under[1], number, number + 2, line)
            number += 2
            continue
        number += 1


def _rst_heading(styles: list[str], style: str, line: int, body: int, text: str) -> _Heading:
    if style not in styles:
        styles.append(style)
    return _Heading(line, body, styles.index(style) + 1, plain_heading(text.strip()))


def _asciidoc(lines: Sequence[str], first: int) -> Iterator[_Heading]:
    block = ""
    for number in range(first, len(lines) + 1):
        line = lines[number - 1].rstrip()
        if _ASCIIDOC_BLOCK.match(line):
            block = "" if line == block else block or line
        elif not block and (found := _ASCIIDOC.match(line)):
            yield _Heading(number, number + 1, len(found[1]), plain_heading(found[2]))


def _org(lines: Sequence[str], first: int) -> Iterator[_Heading]:
    for number in range(first, len(lines) + 1):
        if found := _ORG.match(lines[number - 1]):
            yield _Heading(number, number + 1, len(found[1]), plain_heading(re.sub(r"^(?:TODO|DONE)\s+", "", found[2])))


def _text(lines: Sequence[str], first: int) -> Iterator[_Heading]:
    """Plain text has the underlined titles of people who know rst; anything else is no heading."""
    yield from (h for h in _rst(lines, first) if not _ADORNMENT.match(h.text))


_HEADINGS: Final[Mapping[str, Callable[[Sequence[str], int], Iterator[_Heading]]]] = MappingProxyType(
    {"markdown": _markdown, "rst": _rst, "asciidoc": _asciidoc, "org": _org, "text": _text, "pdf": _text}
)


# ---------------------------------------------------------------- notebooks


def _notebook(text: str) -> list[Section]:
    """Markdown and code cells of a Jupyter notebook (nbformat 4); outputs are left out. Lines are those of the JSON file."""
    try:
        cells = _Book.model_validate_json(text).cells
    except ValidationError as error:
        if not text.strip():
            return []
        raise ValueError("it is no notebook of format 4 (JSON with cells)") from error
    sections: list[Section] = []
    at = 0
    last: tuple[str | None, tuple[str, ...]] = (None, ())
    for cell in cells:
        kind, source = _cell(cell)
        if not source.strip():
            continue
        at, start, end = _find_cell(text, source, at)
        if kind != "markdown":
            sections.append(Section(*last, start, end, source))
            continue
        for part in read_sections(source, "markdown"):
            last = (part.heading, part.trail) if part.heading is not None else last
            sections.append(Section(*last, start, end, part.text))
    return sections


class _Cell(BaseModel):
    model_config = ConfigDict(defer_build=True)

    cell_type: str = ""
    source: str | list[str] = ""


class _Book(BaseModel):
    model_config = ConfigDict(defer_build=True)

    cells: list[Any]


def _cell(cell: object) -> tuple[str, str]:
    try:
        read = _Cell.model_validate(cell)
    except ValidationError:
        return "", ""
    return read.cell_type, read.source if isinstance(read.source, str) else "".join(read.source)


def _find_cell(text: str, source: str, at: int) -> tuple[int, int, int]:
    """(offset after it, first line, last line) of a cell's source in the file; where it is not found, the place of the one before."""
    lines = [line for line in source.split("\n") if line.strip()]
    first = text.find(json.dumps(lines[0], ensure_ascii=False)[1:-1], at)
    if first < 0:
        first = text.find(json.dumps(lines[0])[1:-1], at)
    if first < 0:
        line = text.count("\n", 0, at) + 1
        return at, line, line
    start = text.count("\n", 0, first) + 1
    last = text.find(json.dumps(lines[-1], ensure_ascii=False)[1:-1], first)
    end = start + text.count("\n", first, last) if last >= 0 else start
    return max(first + 1, last), start, end


# ---------------------------------------------------------------- HTML


class _Outline(HTMLParser):
    """Text of an HTML page with the lines it stands on; scripts, styles and navigation are left out."""

    SKIPPED: Final = frozenset({"script", "style", "nav", "template", "noscript", "svg"})
    BLOCKS: Final = frozenset({"p", "div", "li", "tr", "br", "section", "article", "pre", "table", "ul", "ol", "dd", "dt", "blockquote"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.parts: list[tuple[int, int, str]] = []  # (level of a heading or 0, line, text)
        self._skipped = 0
        self._level = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.SKIPPED:
            self._skipped += 1
        elif tag == "title":
            self._in_title = True
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._level = int(tag[1])
            self.parts.append((self._level, self.getpos()[0], ""))
        elif tag in self.BLOCKS:
            self.parts.append((0, self.getpos()[0], "\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag == "title":
            self._in_title = False
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._level = 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._skipped:
            if self._level and self.parts and self.parts[-1][0]:
                level, line, text = self.parts[-1]
                self.parts[-1] = (level, line, text + data)
            else:
                self.parts.append((0, self.getpos()[0], data))


def html_outline(text: str) -> _Outline:
    """The page, read by the standard library's parser, which takes anything."""
    outline = _Outline()
    outline.feed(text)
    outline.close()
    return outline


def _html(text: str, line_count: int) -> list[Section]:
    sections: list[Section] = []
    above: list[tuple[int, str]] = []
    heading: str | None = None
    trail: tuple[str, ...] = ()
    start, body = 1, ""
    for level, line, part in [*html_outline(text).parts, (1, line_count + 1, "")]:
        if not level:
            body += part
            continue
        said = re.sub(r"[ \t\r\f\v]*\n\s*\n\s*|[ \t]+", lambda m: "\n\n" if "\n" in m[0] else " ", body).strip()
        if heading is not None or said:
            sections.append(Section(heading, trail, start, max(start, line - 1), said))
        while above and above[-1][0] >= level:
            above.pop()
        heading, trail = " ".join(part.split())[:MAX_HEADING] or None, tuple(t for _, t in above)
        if heading:
            above.append((level, heading))
        start, body = line, ""
    return sections
