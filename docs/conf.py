"""How the documentation becomes a site: `scripts/docs`. The pages stay plain Markdown that reads as well on a code host.

Navigation is written once, as the lists of links on the start page: each heading with such a list becomes a part of the site's menu, and
a page that no list names is a warning, which `scripts/docs` treats as an error.
"""

from __future__ import annotations

import re
from typing import Any

project = "search-router"
author = "The search-router authors"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["example"]

myst_heading_anchors = 4
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # answers with … in them are no JSON, and say so

html_theme = "furo"
html_title = "search-router"
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, Any] = {"footer_icons": []}

_PART = re.compile(r"^## (.+)\n((?:.*\n)*?)(?=^## |\Z)", re.M)
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([\w./-]+)\.md\)", re.M)
_FOLDERS = ("decisions/README", "experts/README")
_MENU = "\n```{{toctree}}\n{options}\n{pages}\n```\n"


def add_menu(app: Any, page: str, source: list[str]) -> None:
    """Give the start page a menu of its lists of links, and the first page of a folder one of all its files."""
    if page == root_doc:
        for title, text in _PART.findall(source[0] + "\n"):
            if pages := _ENTRY.findall(text):
                entries = "\n".join(f"{words} <{name}>" for words, name in pages)
                source[0] += _MENU.format(options=f":hidden:\n:caption: {title}\n", pages=entries)
    elif page in _FOLDERS:
        source[0] += _MENU.format(options=":glob:\n:maxdepth: 1\n", pages="*")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_menu)
    return {"parallel_read_safe": True}
