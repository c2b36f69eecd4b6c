"""Paths to languages, tests, vendored and generated files."""

import time

import pytest

from search_router.adapters.local.languages import LANGUAGES, is_generated_path, is_test_path, is_vendored_path, language_of


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("a/b.pyi", "python"),
        ("a/B.PY", "python"),
        ("web/app.tsx", "tsx"),
        ("web/app.d.ts", "typescript"),
        ("web/app.jsx", "javascript"),
        ("x.h", "c"),
        ("x.C", "cpp"),
        ("x.H", "cpp"),
        ("x.hpp", "cpp"),
        ("x.cs", "csharp"),
        ("Dockerfile", "dockerfile"),
        ("docker/Dockerfile.dev", "dockerfile"),
        ("Makefile", "makefile"),
        ("Makefile.am", "makefile"),
        ("Rakefile", "ruby"),
        ("go.mod", "gomod"),
        ("CMakeLists.txt", "cmake"),
        ("notes.txt", "text"),
        (".bashrc", "bash"),
        ("api/v1.proto", "proto"),
        ("README.md", "markdown"),
        ("odd\udcff/name\udcfe.rs", "rust"),
        ("a b/c\nd.go", "go"),
        ("photo.png", None),
        ("noextension", None),
        (".py", None),
        ("py", None),
        ("dir.py/file", None),
        ("", None),
    ],
)
def test_a_path_names_its_language(path: str, language: str | None) -> None:
    assert language_of(path) == language


def test_every_language_the_parsers_know_is_in_the_table() -> None:
    wanted = """python javascript typescript tsx go rust java c cpp csharp ruby php kotlin swift scala bash lua elixir haskell zig
    markdown rst toml yaml json html css sql proto dockerfile makefile"""
    assert set(wanted.split()) <= set(LANGUAGES)


def test_no_extension_or_name_belongs_to_two_languages() -> None:
    extensions = [e for language in LANGUAGES.values() for e in language.extensions]
    names = [n for language in LANGUAGES.values() for n in language.names]
    assert len(extensions) == len(set(extensions))
    assert len(names) == len(set(names))
    assert all(e == e.lower() and not e.startswith(".") for e in extensions)
    assert all(n == n.lower() for n in names)


def test_every_language_is_found_by_each_of_its_own_extensions_and_names() -> None:
    for name, language in LANGUAGES.items():
        assert {language_of(f"dir/file.{e}") for e in language.extensions} <= {name}
        assert {language_of(f"dir/{n}") for n in language.names} <= {name}


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_api.py",
        "pkg/test_api.py",
        "pkg/api_test.py",
        "pkg/conftest.py",
        "pkg/tests.py",
        "pkg/api_test.go",
        "pkg/testdata/in.json",
        "src/app.test.ts",
        "src/app.spec.tsx",
        "src/__tests__/app.js",
        "cypress/login.cy.ts",
        "src/test/java/Foo.java",
        "src/FooTest.java",
        "src/FooIT.java",
        "src/FooTests.cs",
        "src/FooTestCase.php",
        "src/FooSpec.scala",
        "src/TestFoo.java",
        "spec/models/user_spec.rb",
        "spec/support/login.rb",
        "lib/user_test.exs",
        "base/string_unittest.cc",
        "Tests/AppTests/Login.swift",
        "src/tests.rs",
    ],
)
def test_test_conventions_are_recognised(path: str) -> None:
    assert is_test_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/latest.py",
        "src/contest.py",
        "src/attestation.go",
        "src/testimony.py",
        "src/protest/api.py",
        "src/Latest.java",
        "spec/protocol.md",
        "docs/test.md",
        "src/spectrum.rs",
        "src/inspect.ts",
        "src/EDIT.java",
        "tester.py",
    ],
)
def test_names_that_only_contain_test_are_not_tests(path: str) -> None:
    assert not is_test_path(path)


@pytest.mark.parametrize("path", ["node_modules/a/b.js", "a/vendor/x.go", "third_party/x.c", "lib/site-packages/x.py", "ios/Pods/x.m"])
def test_package_managers_directories_are_vendored(path: str) -> None:
    assert is_vendored_path(path)


@pytest.mark.parametrize("path", ["vendor.py", "src/vendor_api.go", "src/inventory/x.py", "vendor"])
def test_a_file_called_vendor_is_not_vendored(path: str) -> None:
    assert not is_vendored_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "api_pb2.py",
        "api_pb2_grpc.py",
        "api_pb2.pyi",
        "api.pb.go",
        "api.pb.gw.go",
        "api_pb.d.ts",
        "model.g.dart",
        "Form.Designer.cs",
        "schema.generated.ts",
        "zz_generated.deepcopy.go",
        "app.min.js",
        "app.js.map",
        "package-lock.json",
        "Cargo.lock",
        "go.sum",
        "src/__generated__/x.ts",
        "dist/x.js",
        "ui/__snapshots__/x.snap",
    ],
)
def test_generated_files_are_recognised(path: str) -> None:
    assert is_generated_path(path)


@pytest.mark.parametrize(
    "path", ["generate.py", "generator.go", "map.js", "build/rules.py", "admin.js", "package.json", "distance/x.js", "pb2.py"]
)
def test_plain_source_is_not_generated(path: str) -> None:
    assert not is_generated_path(path)


def test_a_hundred_thousand_paths_take_well_under_two_seconds() -> None:
    paths = [f"src/package{i % 97}/module{i}/SomeFile{i}.{('py', 'ts', 'go', 'java')[i % 4]}" for i in range(100_000)]
    start = time.process_time()
    for path in paths:
        language_of(path)
        is_test_path(path)
        is_vendored_path(path)
        is_generated_path(path)
    assert time.process_time() - start < 2
