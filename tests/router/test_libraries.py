"""Libraries that a workspace declares, read from real manifest files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from search_router.router.libraries import MAX_MANIFEST_BYTES, MAX_MANIFESTS, LibraryCatalog, known_libraries

MANIFESTS: dict[str, tuple[str, set[str]]] = {
    "pyproject.toml": (
        '[project]\nname = "ours"\ndependencies = ["Pydantic>=2", "httpx[http2]; python_version > \'3.8\'"]\n'
        '[project.optional-dependencies]\ndev = ["pytest-timeout"]\n[dependency-groups]\nlint = ["ruff==0.1", {include-group = "x"}]\n'
        '[tool.poetry.dependencies]\npython = "^3.11"\nflask = "*"\nmine = {path = "../mine"}\n'
        '[tool.poetry.group.test.dependencies]\nfreezegun = "1"\n',
        {"pydantic", "httpx", "pytest-timeout", "pytest_timeout", "ruff", "flask", "freezegun"},
    ),
    "requirements-dev.txt": (
        "# comment\n-r base.txt\n--index-url https://x.example\nscikit-learn==1.4  # why\nnumpy\n"
        "./local\nhttps://x.example/a.whl\nmypkg @ https://x.example/b.whl\n",
        {"scikit-learn", "scikit_learn", "numpy", "mypkg"},
    ),
    "setup.cfg": (
        "[options]\ninstall_requires =\n    attrs>=20\n    click\n[options.extras_require]\ndocs =\n    sphinx\n",
        {"attrs", "click", "sphinx"},
    ),
    "package.json": (
        '{"name": "ours", "dependencies": {"react": "^19", "@tanstack/react-query": "5", "ours-ui": "workspace:*", "b": "file:../b"},'
        '"devDependencies": {"vitest": "1"}, "peerDependencies": {"vue": "3"}, "optionalDependencies": {"fsevents": "2"},'
        '"bundledDependencies": ["ws"]}',
        {"react", "@tanstack/react-query", "@tanstack/react_query", "react-query", "react_query", "vitest", "vue", "fsevents", "ws"},
    ),
    "go.mod": (
        "module example.com/ours\n\ngo 1.22\n\n"
        "require (\n\tgithub.com/gin-gonic/gin v1.9.1\n\tgithub.com/redis/go-redis/v9 v9.0.0 // indirect\n)\n"
        "require gopkg.in/yaml.v3 v3.0.1\nreplace (\n\tgithub.com/x/replaced => ../replaced\n)\n",
        {
            "github.com/gin-gonic/gin", "github.com/gin_gonic/gin", "gin", "github.com/redis/go-redis/v9", "github.com/redis/go_redis/v9",
            "go-redis", "go_redis", "gopkg.in/yaml.v3", "yaml",
        },
    ),
    "Cargo.toml": (
        '[package]\nname = "ours"\n[dependencies]\nserde = { version = "1", features = ["derive"] }\nmine = { path = "../mine" }\n'
        'rt = { package = "tokio", version = "1" }\n[dev-dependencies]\nproptest = "1"\n[target.\'cfg(unix)\'.dependencies]\nnix = "0.27"\n'
        '[workspace.dependencies]\nanyhow = "1"\n',
        {"serde", "rt", "tokio", "proptest", "nix", "anyhow"},
    ),
    "pom.xml": (
        '<?xml version="1.0"?><project xmlns="http://maven.apache.org/POM/4.0.0"><artifactId>ours</artifactId>'
        "<dependencies><dependency>"
        "<groupId>com.google.guava</groupId><artifactId> guava </artifactId></dependency>"
        "<dependency><artifactId>${x}</artifactId></dependency>"
        "</dependencies></project>",
        {"guava"},
    ),
    "Gemfile": (
        'source "https://rubygems.org"\ngem "rails", "~> 7"\n  gem \'rspec-rails\'\n# gem "commented"\n',
        {"rails", "rspec-rails", "rspec_rails"},
    ),
    "composer.json": (
        '{"require": {"php": ">=8", "ext-json": "*", "symfony/console": "^7"}, "require-dev": {"phpunit/phpunit": "11"}}',
        {"symfony/console", "console", "phpunit/phpunit", "phpunit"},
    ),
    "Ours.csproj": (
        '<Project><ItemGroup><PackageReference Include="Newtonsoft.Json" Version="13" /></ItemGroup></Project>',
        {"newtonsoft.json"},
    ),
    "ours.gemspec": ('Gem::Specification.new do |spec|\n  spec.add_dependency "thor", "~> 1"\nend\n', {"thor"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_kind_of_manifest_names_its_dependencies(tmp_path: Path, name: str) -> None:
    text, names = MANIFESTS[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = LibraryCatalog().read(tmp_path)
    assert (found.names, found.manifests, found.problems) == (names, (name,), ())


def test_manifests_are_found_two_levels_deep_and_not_in_other_peoples_code(tmp_path: Path) -> None:
    for folder in (".", "a", "a/b", "a/b/c", "node_modules/x", ".git", "vendor/y", "a/node_modules"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "requirements.txt").write_text(f"lib{folder.replace('/', '').replace('.', 'root')}\n")
    found = LibraryCatalog().read(tmp_path)
    assert found.manifests == ("requirements.txt", "a/requirements.txt", "a/b/requirements.txt")
    assert found.names == {"libroot", "liba", "libab"}
    assert known_libraries(tmp_path) == found.names


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "requirements.txt").write_text("secretlib\n")
    (root / "linked").symlink_to(outside)
    (root / "requirements.txt").symlink_to(outside / "requirements.txt")
    assert LibraryCatalog().read(root).names == frozenset()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("pyproject.toml", b"[project\n", "malformed"),
        ("pyproject.toml", b"a = " + b"[" * 100_000, "malformed"),
        ("package.json", b"{", "malformed"),
        ("package.json", b"[" * 100_000, "malformed"),
        ("package.json", b"\xff\xfe\xff", "malformed"),
        ("requirements.txt", b"caf\xe9\n", "malformed"),
        ("setup.cfg", b"no section\n", "malformed"),
        ("go.mod", b"require (\n", "no module line"),
        ("pom.xml", b"<project>", "malformed"),
        ("pom.xml", b"<a>" * 100_000, "malformed"),
        ("pom.xml", b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><project>&c;</project>', "document type"),
        ("pom.xml", '<!DOCTYPE x SYSTEM "file:///etc/passwd"><project/>'.encode("utf-16"), "document type"),
        ("package.json", b" " * (MAX_MANIFEST_BYTES + 1), "larger"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_reported_and_hides_no_other(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "Gemfile").write_text('gem "rails"\n')
    found = LibraryCatalog().read(tmp_path)
    assert found.names == {"rails"}
    assert [problem.path for problem in found.problems] == [name]
    assert said in found.problems[0].message


@pytest.mark.parametrize(
    "text", ['{"dependencies": []}', '{"dependencies": {"": "1", "/": "2", "a": 3}}', "[]", "3", '{"bundledDependencies": [1, null]}']
)
def test_odd_shapes_in_a_manifest_name_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text)
    assert LibraryCatalog().read(tmp_path).names <= {"a"}


def test_a_root_that_is_gone_is_a_problem_not_an_exception(tmp_path: Path) -> None:
    found = LibraryCatalog().read(tmp_path / "gone")
    assert (found.names, found.problems[0].path) == (frozenset(), ".")


def test_only_so_many_manifests_are_read_and_the_rest_is_said(tmp_path: Path) -> None:
    for i in range(MAX_MANIFESTS + 5):
        (tmp_path / f"requirements-{i:03}.txt").write_text(f"lib{i}\n")
    found = LibraryCatalog().read(tmp_path)
    assert len(found.manifests) == MAX_MANIFESTS
    assert "more than 200 manifests" in found.problems[0].message


def test_only_changed_manifests_are_read_again(tmp_path: Path) -> None:
    one, two = tmp_path / "requirements.txt", tmp_path / "Gemfile"
    one.write_text("flask\n")
    two.write_text('gem "rails"\n')
    catalog = LibraryCatalog()
    assert catalog.read(tmp_path).names == {"flask", "rails"}
    assert catalog.read(tmp_path).names == {"flask", "rails"}
    assert catalog.files_read == 2
    one.write_text("django\n")
    os.utime(one, ns=(1, 1))
    assert catalog.read(tmp_path).names == {"django", "rails"}
    assert catalog.files_read == 3
    two.unlink()
    assert catalog.read(tmp_path).names == {"django"}
    assert catalog.files_read == 3


def test_a_long_hostile_line_takes_no_time(tmp_path: Path) -> None:
    for name in ("requirements.txt", "Gemfile", "go.mod"):
        (tmp_path / name).write_bytes((b"module x\n" if name == "go.mod" else b"") + b"a." * 2**18 + b"\n" * 2**18)
    started = time.process_time()
    LibraryCatalog().read(tmp_path)
    assert time.process_time() - started < 10  # half a million lines: seconds on a slow machine, hours if it were quadratic
