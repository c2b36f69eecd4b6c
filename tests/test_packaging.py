"""What other programs install us from: the registry's server.json and the desktop bundle say the truth, and the bundle's server answers.

The schemas below are ours, written from the documented fields: server.json as of 2025-12-11, MCPB manifest 0.4.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters

import search_router
from tests.command_line import child_environ
from tests.repositories import make_repository

TOP = Path(__file__).resolve().parent.parent
TEXT = {"type": "string", "minLength": 1}
INPUT = {"format": {"enum": ["string", "number", "boolean", "filepath"]}, "description": TEXT, "isRepeated": {"type": "boolean"}}
SERVER = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        "title": {**TEXT, "maxLength": 100},
        "description": {**TEXT, "maxLength": 100},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
                "properties": {
                    "registryType": {"enum": ["pypi"]},
                    "identifier": TEXT,
                    "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
                    "runtimeHint": {"const": "uvx"},
                    "transport": {"const": {"type": "stdio"}},
                    "packageArguments": {
                        "type": "array",
                        "items": {
                            "oneOf": [
                                {"required": ["type", "value"], "properties": {"type": {"const": "positional"}, "value": TEXT}},
                                {"required": ["type", "name"], "properties": {"type": {"const": "named"}, "name": TEXT, **INPUT}},
                            ]
                        },
                    },
                    "environmentVariables": {
                        "type": "array",
                        "items": {
                            "required": ["name"],
                            "additionalProperties": False,
                            "properties": {"name": {"type": "string", "pattern": "^[A-Z_]+$"}, **INPUT},
                        },
                    },
                },
            },
        },
    },
}
MANIFEST = {
    "type": "object",
    "required": ["manifest_version", "name", "version", "description", "author", "server"],
    "additionalProperties": False,
    "properties": {
        "manifest_version": {"const": "0.4"},
        **dict.fromkeys(("name", "display_name", "version", "description", "license"), TEXT),
        "author": {"type": "object", "required": ["name"]},
        "keywords": {"type": "array", "items": TEXT},
        "server": {
            "type": "object",
            "required": ["type", "entry_point", "mcp_config"],
            "additionalProperties": False,
            "properties": {
                "type": {"const": "uv"},
                "entry_point": TEXT,
                "mcp_config": {"type": "object", "required": ["command", "args", "env"], "additionalProperties": {}},
            },
        },
        "tools": {"type": "array", "items": {"type": "object", "required": ["name", "description"]}},
        "user_config": {"type": "object", "additionalProperties": {"required": ["type", "title", "description"]}},
        "compatibility": {"type": "object"},
    },
}


def read(name: str) -> Any:
    return json.loads((TOP / name).read_text("utf-8"))


def test_the_registrys_file_has_the_documented_form_and_our_version() -> None:
    server = read("server.json")
    jsonschema.validate(server, SERVER)
    assert {server["version"], *(package["version"] for package in server["packages"])} == {search_router.__version__}


def test_the_registry_can_see_that_the_package_is_ours() -> None:
    assert re.search(r"<!-- mcp-name: (\S+) -->", (TOP / "README.md").read_text("utf-8"))[1] == read("server.json")["name"]  # type: ignore[index] - no match fails the test as well
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    assert read("server.json")["packages"][0]["identifier"] == project["name"]
    assert project["name"] in project["scripts"], "uvx runs the script of the package's own name"


def test_the_registrys_arguments_are_those_of_the_command_line(tmp_path: Path) -> None:
    arguments = read("server.json")["packages"][0]["packageArguments"]
    words = [argument.get("value") or argument["name"] for argument in arguments]
    command = [sys.executable, "-m", "search_router", *words, str(tmp_path), "--help"]
    shown = subprocess.run(command, env=child_environ(tmp_path), capture_output=True, text=True, timeout=30, check=True).stdout
    assert "Run the MCP server" in shown


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "one.mcpb"
    subprocess.run([sys.executable, str(TOP / "scripts/mcpb"), str(out)], check=True, capture_output=True, timeout=60)
    return out


def unpacked(bundle: Path, folder: Path) -> Path:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def test_the_same_tree_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    again = tmp_path / "two.mcpb"
    subprocess.run([sys.executable, str(TOP / "scripts/mcpb"), str(again)], check=True, capture_output=True, timeout=60)
    assert again.read_bytes() == bundle.read_bytes()


def test_the_manifest_has_the_documented_form_and_says_the_truth(bundle: Path, tmp_path: Path) -> None:
    folder = unpacked(bundle, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    jsonschema.validate(manifest, MANIFEST)
    assert manifest["version"] == search_router.__version__
    assert (folder / manifest["server"]["entry_point"]).is_file()
    bundled = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    ours = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    assert (bundled["dependencies"], bundled["requires-python"]) == (ours["dependencies"], ours["requires-python"])
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
    assert not [name for name in names if "__pycache__" in name or name.startswith(("/", "..")) or "/tests/" in name]


def started_by_the_application(bundle: Path, manifest: dict[str, Any], roots: list[Path]) -> tuple[list[str], dict[str, str]]:
    """Arguments behind `uv run --directory DIR`, and the environment, with the application's names replaced."""
    config = manifest["server"]["mcp_config"]
    args: list[str] = []
    for word in config["args"]:
        args += map(str, roots) if word == "${user_config.roots}" else [word.replace("${__dirname}", str(bundle))]
    assert args[:3] == ["run", "--directory", str(bundle)]
    return args[3:], {name: value.replace("${__dirname}", str(bundle)) for name, value in config["env"].items()}


@pytest.mark.anyio
async def test_a_server_started_from_the_unpacked_bundle_answers(bundle: Path, tmp_path: Path) -> None:
    folder = unpacked(bundle, tmp_path / "extension ü")
    root = make_repository(tmp_path / "shop", {"shop.py": "def charge_card(token):\n    return token\n"})
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    arguments, environ = started_by_the_application(folder, manifest, [root])
    environ = {**child_environ(tmp_path), **environ}
    where = [sys.executable, "-c", "import search_router; print(search_router.__file__)"]
    place = subprocess.run(where, env=environ, cwd=folder, capture_output=True, text=True, timeout=30, check=True).stdout
    assert Path(place.strip()).is_relative_to(folder)
    target = StdioServerParameters(command=sys.executable, args=arguments, cwd=folder, env=environ)
    with anyio.fail_after(60):
        async with Client(target) as session:
            tools = [tool.name for tool in (await session.list_tools()).tools]
            answer = (await session.call_tool("search_knowledge", {"question": "charge_card"})).structured_content
    assert sorted(tools) == sorted(tool["name"] for tool in manifest["tools"])
    assert answer is not None
    assert [item["path"] for item in answer["evidence"]] == ["shop.py"]
