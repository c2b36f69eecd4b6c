"""The snippets of docs/install.md are what install writes. Run as a program, it writes them into the page."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest

from search_router.clients.catalog import CLIENTS, Client, Format, Scope, Surroundings
from search_router.clients.setup import Order, install

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/install.md"
PROGRAM = "/home/me/.local/bin/search-router"
BLOCK = re.compile(r"<!-- install: ([a-z-]+) -->\n(?:```\w+\n(.*?)```\n)?", re.DOTALL)


def written_by(client: Client, folder: Path) -> str:
    here = Surroundings("linux", folder, folder, {})
    roots = (Path("/home/me/work/shop"),) if client.names_no_project else ()
    return install(client, Order(Scope.USER, (PROGRAM,), roots), here, folder / "state").path.read_text("utf-8")


@pytest.mark.parametrize("client", CLIENTS, ids=[client.id for client in CLIENTS])
def test_the_snippet_of_each_client_is_what_install_writes(tmp_path: Path, client: Client) -> None:
    assert dict(BLOCK.findall(PAGE.read_text("utf-8")))[client.id] == written_by(client, tmp_path)


@pytest.mark.parametrize("client", CLIENTS, ids=[client.id for client in CLIENTS])
def test_the_page_names_the_source_of_each_format(client: Client) -> None:
    section = PAGE.read_text("utf-8").partition(f"### {client.id}: ")[2].partition("###")[0]
    assert f"Source:\n{client.source.partition(' ')[0]}" in section.replace("Source: ", "Source:\n")


def main() -> int:
    def filled(found: re.Match[str]) -> str:
        client = next(client for client in CLIENTS if client.id == found[1])
        with tempfile.TemporaryDirectory() as folder:
            language = "toml" if client.format is Format.TOML else "json"
            return f"<!-- install: {client.id} -->\n```{language}\n{written_by(client, Path(folder))}```\n"

    PAGE.write_text(BLOCK.sub(filled, PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
