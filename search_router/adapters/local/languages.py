"""Which language a path is in, and whether it is a test, vendored or generated: from the path alone, no file is opened.

These are the conventions of the languages' own tools. A path that follows none of them is plain source: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """How a language's files are called: extensions without the dot, and whole file names, both in lower case."""

    extensions: tuple[str, ...]
    names: tuple[str, ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _language(extensions: str, names: str = "") -> Language:
    return Language(tuple(extensions.split()), tuple(names.split()))


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        "asm": _language("s asm"),
        "bash": _language("sh bash zsh ksh bats", ".bashrc .bash_profile .bash_aliases .profile .zshrc .zprofile .envrc"),
        "c": _language("c h"),
        "clojure": _language("clj cljs cljc edn"),
        "cmake": _language("cmake", "cmakelists.txt"),
        "cpp": _language("cpp cc cxx c++ hpp hh hxx h++ ipp inl tpp ino cu cuh"),
        "csharp": _language("cs csx"),
        "css": _language("css"),
        "dart": _language("dart"),
        "dockerfile": _language("dockerfile", "dockerfile containerfile"),
        "elixir": _language("ex exs heex eex"),
        "elm": _language("elm"),
        "erlang": _language("erl hrl", "rebar.config"),
        "fsharp": _language("fs fsi fsx"),
        "go": _language("go"),
        "gomod": _language("", "go.mod go.work"),
        "graphql": _language("graphql gql"),
        "groovy": _language("groovy gradle gvy", "jenkinsfile"),
        "haskell": _language("hs lhs hsc"),
        "hcl": _language("tf tfvars hcl"),
        "html": _language("html htm xhtml"),
        "ini": _language("ini cfg conf properties", ".editorconfig .gitconfig .gitmodules .npmrc"),
        "java": _language("java"),
        "javascript": _language("js mjs cjs jsx", "jakefile"),
        "json": _language("json jsonc json5 jsonl ndjson geojson webmanifest", ".babelrc .eslintrc .prettierrc composer.lock pipfile.lock"),
        "julia": _language("jl"),
        "kotlin": _language("kt kts"),
        "less": _language("less"),
        "lua": _language("lua rockspec"),
        "makefile": _language("mk mak make", "makefile gnumakefile bsdmakefile"),
        "markdown": _language("md markdown mdx mdown mkd"),
        "nix": _language("nix"),
        "objectivec": _language("m mm"),
        "ocaml": _language("ml mli"),
        "perl": _language("pl pm t"),
        "php": _language("php phtml php5 php7"),
        "powershell": _language("ps1 psm1 psd1"),
        "proto": _language("proto"),
        "python": _language("py pyi pyw pyx pxd", "sconstruct sconscript"),
        "r": _language("r rmd"),
        "rst": _language("rst rest"),
        "ruby": _language("rb rake gemspec ru erb", "rakefile gemfile guardfile podfile vagrantfile fastfile brewfile capfile"),
        "rust": _language("rs"),
        "scala": _language("scala sc sbt"),
        "scss": _language("scss sass"),
        "solidity": _language("sol"),
        "sql": _language("sql ddl psql"),
        "starlark": _language("bzl star bazel", "build workspace tiltfile"),
        "svelte": _language("svelte"),
        "swift": _language("swift"),
        "text": _language("txt text", "license copying notice authors contributors changelog readme"),
        "thrift": _language("thrift"),
        "toml": _language("toml", "pipfile cargo.lock poetry.lock uv.lock"),
        "tsx": _language("tsx"),
        "typescript": _language("ts mts cts"),
        "vim": _language("vim", ".vimrc"),
        "vue": _language("vue"),
        "xml": _language("xml xsd xsl xslt svg csproj fsproj vbproj props targets plist"),
        "yaml": _language("yaml yml", ".clang-format .clang-tidy"),
        "zig": _language("zig zon"),
    }
)

_BY_EXTENSION = {e: name for name, language in LANGUAGES.items() for e in language.extensions}
_BY_NAME = {n: name for name, language in LANGUAGES.items() for n in language.names}
# Dockerfile.dev, Makefile.am, Jenkinsfile.release: the suffix names a variant, not a language.
_VARIANTS = ("dockerfile", "containerfile", "makefile", "gnumakefile", "jenkinsfile")
_PROSE = frozenset({"markdown", "rst", "text"})


def language_of(path: str) -> str | None:
    """The language's name in `LANGUAGES`, or None when the file's name does not tell.

    `.h` is C: telling C from C++ needs the tree. `.C` and `.H` (capital) are C++, as compilers have it.
    """
    name = path.rpartition("/")[2]
    lower = name.lower()
    found = _BY_NAME.get(lower)
    if found is not None:
        return found
    stem, dot, extension = lower.rpartition(".")
    if not dot or not stem:
        return None
    if extension in ("c", "h") and name.endswith((".C", ".H")):
        return "cpp"
    found = _BY_EXTENSION.get(extension)
    if found is not None:
        return found
    variant = lower.partition(".")[0]
    return _BY_NAME[variant] if variant in _VARIANTS else None


_NOT_TEXT = frozenset(
    """7z a apk avi avif bin bmp bz2 class dat db dll dmg doc docx dylib eot exe flac gif gz heic icns ico jar jpeg jpg lib lz4 mkv mov mp3
    mp4 o obj odt ogg onnx otf parquet pdf pickle pkl png ppt pptx psd pyc pyd rar so sqlite sqlite3 tar tgz tif tiff ttf wasm wav webm webp
    whl woff woff2 xls xlsx xz zip zst""".split()
)


def text_language(path: str) -> str | None:
    """The language of a file that may be text: `text` where the name does not tell, None where it tells of something else."""
    return language_of(path) or (None if path.rpartition(".")[2].lower() in _NOT_TEXT else "text")


def languages_named(language: str | None) -> frozenset[str]:
    """The names in `LANGUAGES` that a language in the scope means: TypeScript has two."""
    if language is None:
        return frozenset()
    return frozenset({"typescript", "tsx"}) if language == "typescript" else frozenset({language})


_TEST_DIRECTORIES = frozenset(
    {"test", "tests", "__tests__", "testing", "testdata", "test-data", "test_data", "e2e", "androidtest", "unittests", "integration_tests"}
)
_SPEC_DIRECTORIES = frozenset({"spec", "specs"})
# On the stem in lower case: test_x.py, x_test.go, x.spec.ts, x-test.js, x_unittest.cc, conftest.py, tests.rs.
_TEST_STEM = re.compile(r"^(?:test_.*|tests?|conftest)$|.[._-](?:test|tests|spec|specs|unittest|e2e|cy)$")
# On the stem as written: FooTest.java, FooTests.cs, FooSpec.scala, FooIT.java, FooTestCase.php, TestFoo.java.
_TEST_CAMEL = re.compile(r"[a-z0-9](?:Tests?|TestCase|Specs?|IT)$|^Tests?[A-Z]")
_CAMEL_LANGUAGES = frozenset(
    {"java", "kotlin", "scala", "groovy", "csharp", "fsharp", "php", "swift", "objectivec", "cpp", "haskell", "dart"}
)


def is_test_path(path: str) -> bool:
    """Whether the path follows a test convention of its language: a test directory, or a test file's name.

    A `spec` directory counts only for code, because it often holds specifications in prose.
    """
    *directories, name = path.split("/")
    folders = [d.lower() for d in directories]
    if not _TEST_DIRECTORIES.isdisjoint(folders):
        return True
    stem = name.rpartition(".")[0] or name
    by_name = _TEST_STEM.search(stem.lower())
    by_case = _TEST_CAMEL.search(stem)
    in_spec = not _SPEC_DIRECTORIES.isdisjoint(folders)
    if not (by_name or by_case or in_spec):
        return False
    language = language_of(name)
    if by_name or in_spec:
        return language is not None and language not in _PROSE
    return language in _CAMEL_LANGUAGES


_VENDORED_DIRECTORIES = _words(
    """vendor vendors vendored _vendor _vendored third_party third-party thirdparty 3rdparty node_modules bower_components jspm_packages
    site-packages dist-packages .venv venv virtualenv pods carthage godeps .yarn .bundle .gradle .cargo elm-stuff"""
)


def is_vendored_path(path: str) -> bool:
    """Whether a directory on the path holds other people's code, by the conventions of package managers."""
    return not _VENDORED_DIRECTORIES.isdisjoint(path.lower().split("/")[:-1])


_GENERATED_DIRECTORIES = _words(
    "generated __generated__ dist .next .nuxt .svelte-kit __pycache__ __snapshots__ .dart_tool auto-generated autogenerated"
)
_GENERATED_NAMES = _words(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock cargo.lock poetry.lock uv.lock pdm.lock
    pipfile.lock gemfile.lock composer.lock mix.lock flake.lock go.sum go.work.sum podfile.lock pubspec.lock package.resolved
    gradle.lockfile packages.lock.json .terraform.lock.hcl module.bazel.lock"""
)
_GENERATED_NAME = re.compile(
    r"_pb2(?:_grpc)?\.pyi?$|\.pb(?:\.[a-z]+)?\.(?:go|h|cc|swift|dart)$|_pb\.(?:js|ts|d\.ts|rb)$"  # protocol buffers
    r"|\.(?:g|freezed|mocks)\.dart$|\.(?:g|designer)\.(?:cs|vb)$|\.g\.i\.cs$"
    r"|[._-]generated\.[a-z]+$|\.gen\.[a-z]+$|_gen\.go$|^zz_generated|^mock_.*\.go$|_mock\.go$"
    r"|[.-]min\.(?:js|css|mjs)$|\.bundle\.js$|\.(?:js|css|ts|mjs)\.map$|\.snap$"
)


def is_generated_path(path: str) -> bool:
    """Whether a tool wrote the file, by its name or directory: protocol buffers, mocks, minified files, lock files, snapshots.

    `build`, `target` and `out` are not in the list: where they are output they are ignored by git, else they are source.
    """
    *directories, name = path.lower().split("/")
    return name in _GENERATED_NAMES or not _GENERATED_DIRECTORIES.isdisjoint(directories) or bool(_GENERATED_NAME.search(name))
