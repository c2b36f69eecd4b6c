"""The snippets of docs/install.md are what install writes. Run as a program, it writes them into the page."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from search_router.clients.catalog import CLIENTS, Client, Format, Scope, Surroundings
from search_router.clients.setup import Order, install

TOP = Path(__file__).resolve().parent.parent.parent
PAGE, README = TOP / "docs/install.md", TOP / "README.md"
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


README_SNIPPET = re.compile(r"<!-- config: ([a-z -]+) -->\n```(?:json|toml)\n(.*?)```", re.DOTALL)


def test_the_snippets_of_the_readme_are_entries_that_install_would_write_without_a_folder(tmp_path: Path) -> None:
    shown = {name: text for names, text in README_SNIPPET.findall(README.read_text("utf-8")) for name in names.split()}
    assert set(shown) == {"claude-code", "cursor", "vscode", "codex"}
    for client in CLIENTS:
        if client.id in shown:
            folder = tmp_path / client.id
            folder.mkdir()
            read = tomllib.loads if client.format is Format.TOML else json.loads
            written, (entry,) = read(written_by(client, folder)), read(shown[client.id]).values()
            (expected,) = written.values()
            expected["search-router"] |= {"command": "/path/to/.venv/bin/search-router", "args": ["serve"]}
            assert (list(read(shown[client.id])), entry) == (list(written), expected)


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
