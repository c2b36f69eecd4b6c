from __future__ import annotations

import gc
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from search_router.adapters.local.docs import NOT_OF_THE_PROJECT, OTHER_VERSION, DocsExpert, choose_libraries
from search_router.adapters.local.docs_entries import Entry, go_entries, public_name, python_entries, rust_entries, typescript_entries
from search_router.adapters.local.docs_installed import find_libraries, pack_entries, read_entries, unpack_entries
from search_router.adapters.local.docs_locked import read_locked
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.config.experts import DocsConfig
from search_router.config.loader import load_config
from search_router.router.opening import open_router
from search_router.schema import ExpertResult, Tier
from tests.adapters.local.knowledge_workspace import call_for, write
from tests.scripted_router import environ

SITE = ".venv/lib/python3.11/site-packages"
PYTHON = {
    f"{SITE}/zebra-2.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: zebra\nVersion: 2.1.0\n\n# Zebra\n\n"
    "## Painting stripes\n\nStripes are painted with a brush.\n",
    f"{SITE}/zebra-2.1.0.dist-info/RECORD": "zebra/__init__.py,,\nzebra/_core.py,,\nzebra/tests/test_a.py,,\n",
    f"{SITE}/zebra/__init__.py": '"""Zebras for everyone."""\nfrom ._core import Zebra, paint\nfrom . import _core\n',
    f"{SITE}/zebra/_core.py": 'class Zebra:\n    """An animal with stripes."""\n\n    def gallop(self, speed: int = 3) -> None:\n'
    '        """Run away fast from a lion."""\n\n    def _hidden(self): ...\n\n\ndef paint(color: str, *, width: int = 2) -> Zebra:\n'
    '    """Give a zebra new stripes."""\n',
    f"{SITE}/zebra/tests/test_a.py": "def test_gallop(): ...\n",
}
HORSE = {
    f"{SITE}/horse-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Horse\nVersion: 1.0\n",
    f"{SITE}/horse-1.0.dist-info/RECORD": "horse.py,,\n",
    f"{SITE}/horse.py": 'def gallop():\n    """Run."""\n',
}
NODE = {
    "node_modules/@wild/zebra/package.json": '{"name": "@wild/zebra", "version": "3.0.1"}',
    "node_modules/@wild/zebra/README.md": "# Zebra for node\n\nUse it.\n",
    "node_modules/@wild/zebra/index.d.ts": "/** Paints the animal. */\nexport declare function paint(color: string): void;\n"
    "export interface Options {\n"
    "  /** How broad a stripe is. */\n  width?: number;\n}\n",
}


def docs_config() -> DocsConfig:
    config = load_config(roots=[], environ={"HOME": "/nonexistent", "SEARCH_ROUTER_HOME": "/nonexistent"}).config.experts["docs"]
    assert isinstance(config, DocsConfig)
    return config


async def ask(folder: Path, files: Mapping[str, str], question: str) -> ExpertResult:
    project = write(folder / "work", dict(files))
    expert = DocsExpert("docs", docs_config(), folder / "cache", {"HOME": str(folder)})
    try:
        return await expert.search(call_for(question, project))
    finally:
        await expert.aclose()


def test_python_documentation_has_the_names_that_people_write(tmp_path: Path) -> None:
    project = write(tmp_path / "work", dict(PYTHON))
    library = next(each for each in find_libraries(project.root, read_locked(project), {}) if each.name == "zebra")
    assert (library.label, library.version, library.ours) == ("pypi/zebra", "2.1.0", False)
    entries = {e.name: e for e in read_entries(library)}
    assert {"zebra", "zebra.Zebra", "zebra.Zebra.gallop", "zebra.paint"} <= entries.keys()
    assert entries["zebra.paint"].signature == "def paint(color: str, *, width: int=2) -> Zebra"
    assert entries["zebra.Zebra.gallop"].line == 4
    assert not any("hidden" in name or "test" in name for name in entries)
    assert any("Painting stripes" in name for name in entries)
    assert unpack_entries(pack_entries(list(entries.values()))) == list(entries.values())
    with pytest.raises(DamagedPayload):
        unpack_entries(b"nothing")


def test_a_library_is_there_as_soon_as_it_is_installed_and_not_when_it_is_gone(tmp_path: Path) -> None:
    project = write(tmp_path / "work", dict(PYTHON))

    def installed() -> set[tuple[str, str]]:
        found = find_libraries(project.root, read_locked(project), {})
        return {(each.name, each.version) for each in found if not each.ours and each.location.is_relative_to(tmp_path)}

    assert installed() == {("zebra", "2.1.0")}
    write(tmp_path / "work", dict(HORSE))
    assert installed() == {("zebra", "2.1.0"), ("Horse", "1.0")}
    (project.root / SITE / "zebra-2.1.0.dist-info").rename(project.root / SITE / "zebra-2.2.0.dist-info")
    (project.root / SITE / "zebra-2.2.0.dist-info/METADATA").write_text("Name: zebra\nVersion: 2.2.0\n")
    assert installed() == {("zebra", "2.2.0"), ("Horse", "1.0")}
    shutil.rmtree(project.root / SITE / "horse-1.0.dist-info")
    assert installed() == {("zebra", "2.2.0")}


@pytest.mark.parametrize(
    ("record", "tops"),
    [
        ("zebra/__init__.py,sha256=x,3\nzebra/a.txt,,\n", {"zebra"}),
        ('horse.py,,\n"a,b/c.py",,\n_hidden.py,,\ndata/x.json,,\n', {"horse"}),
        ("../../bin/run.py,,\nx-1.dist-info/RECORD,,\ntwo/deep/er.py,,\n", {"two"}),
        ("", set()),
    ],
)
def test_import_names_are_read_from_what_was_installed(tmp_path: Path, record: str, tops: set[str]) -> None:
    files = {f"{SITE}/x-1.dist-info/METADATA": "Name: dist-x\nVersion: 1\n", f"{SITE}/x-1.dist-info/RECORD": record}
    project = write(tmp_path / "work", files)
    (library,) = [each for each in find_libraries(project.root, read_locked(project), {}) if each.name == "dist-x"]
    assert library.spoken == {"dist-x", *tops}


def test_names_go_through_what_packages_export() -> None:
    exports = {"a._b.C": "a.C", "a.sub._d.*": "a.sub"}
    assert public_name("a._b.C.method", exports) == "a.C.method"
    assert public_name("a.sub._d.f", exports) == "a.sub.f"
    assert public_name("a.e.f", exports) == "a.e.f"


def test_other_languages_are_read_by_the_comment_before_the_name() -> None:
    ts = {e.name: (e.kind, e.doc) for e in typescript_entries(NODE["node_modules/@wild/zebra/index.d.ts"], "zebra", "index.d.ts")}
    assert ts["zebra.paint"] == ("function", "Paints the animal.")
    assert ts["zebra.Options.width"] == ("method", "How broad a stripe is.")
    go = go_entries(
        "package z\n\n// Paint gives stripes.\n// Twice.\nfunc (z *Zebra) Paint(c string) error {\n}\n\ntype Zebra struct {\n", "z", "z.go"
    )
    assert [(e.name, e.kind, e.doc, e.line) for e in go] == [
        ("z.Zebra.Paint", "method", "Paint gives stripes.\nTwice.", 5),
        ("z.Zebra", "type", "", 8),
    ]
    rust = rust_entries("/// Gives stripes.\n#[inline]\npub fn paint(c: &str) -> Zebra {\n}\nfn hidden() {}\n", "zebra", "lib.rs")
    assert rust == [Entry("zebra::paint", "function", "pub fn paint(c: &str) -> Zebra", "Gives stripes.", "lib.rs", 3)]
    assert python_entries("def broken(:", "m", "m.py") == []


def test_modules_are_parsed_by_several_threads_at_once() -> None:
    """CPython 3.11 counts the depth of trees of all threads together: a switch in the middle of one makes the other fail."""
    flat = "".join(f"def f{n}(a, b=(1, 2)):\n    return [a + b * {n} for a in b]\n" for n in range(60))
    deep = "class A:\n    def m(self):\n        return [[[(1, (2, (3,)))]]]\n" * 40
    failures: list[SystemError] = []

    def parse(text: str) -> None:
        for _ in range(40):
            try:
                python_entries(text, "m", "m.py")
            except SystemError as error:
                failures.append(error)

    def switch(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)  # gives the interpreter to another thread, in the middle of whatever was allocating

    before = gc.get_threshold()
    gc.set_threshold(100)
    gc.callbacks.append(switch)
    try:
        threads = [threading.Thread(target=parse, args=(text,)) for text in (flat, deep, flat, deep)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(switch)
        gc.set_threshold(*before)
    assert failures == []


def test_lock_files_fix_versions_and_manifests_do_so_only_where_they_pin(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\ndependencies = ["Zebra_Core>=1", "horse==1.2"]\n[dependency-groups]\ndev = ["donkey"]\n',
        "requirements-dev.txt": "# no\n-r other.txt\nmule[all]===3.0  # yes\n",
        "uv.lock": '[[package]]\nname = "zebra-core"\nversion = "1.4"\n',
        "package.json": '{"dependencies": {"a": "^1.0.0", "b": "2.0.0"}}',
        "package-lock.json": '{"packages": {"": {}, "node_modules/a": {"version": "1.0.5"}, "node_modules/a/node_modules/c": {"version": "9"}}}',  # noqa: E501 - a lock file on one line
        "go.mod": "module x\n\nrequire (\n\tgithub.com/Wild/zebra v1.2.3\n\tgithub.com/x/y v0.1.0 // indirect\n)\n",
        "Cargo.lock": '[[package]]\nname = "zebra_rs"\nversion = "0.3.0"\n',
        "poetry.lock": "not toml [",
    }
    locked = read_locked(write(tmp_path / "work", dict(files)))
    assert locked.versions == {
        "pypi": {"zebra-core": "1.4", "horse": "1.2", "donkey": None, "mule": "3.0"},
        "npm": {"a": "1.0.5", "b": "2.0.0"},
        "go": {"github.com/Wild/zebra": "v1.2.3"},
        "cargo": {"zebra-rs": "0.3.0"},
    }
    assert [p.split(" ")[0] for p in locked.problems] == ["poetry.lock"]


def test_go_and_cargo_libraries_are_found_where_their_tools_keep_them(tmp_path: Path) -> None:
    files = {
        "go.mod": "module x\n\nrequire github.com/Wild/zebra v1.2.3\n",
        "Cargo.lock": '[[package]]\nname = "zebra-rs"\nversion = "0.3.0"\n',
    }
    project = write(tmp_path / "work", files)
    write(tmp_path / "home/go/pkg/mod/github.com/!wild/zebra@v1.2.3", {"z.go": "package zebra\n\n// Paint paints.\nfunc Paint() {\n}\n"})
    write(tmp_path / "home/.cargo/registry/src/index-1/zebra-rs-0.3.0", {"src/lib.rs": "/// Paints.\npub fn paint() {}\n"})
    found = find_libraries(project.root, read_locked(project), {"HOME": str(tmp_path / "home")})
    names = {(x.label, x.version): [e.name for e in read_entries(x)] for x in found if x.ecosystem != "pypi"}
    assert names == {("go/github.com/Wild/zebra", "v1.2.3"): ["zebra.Paint"], ("cargo/zebra-rs", "0.3.0"): ["zebra_rs::paint"]}


def test_the_libraries_that_a_question_names_are_asked_else_the_projects_own(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {**PYTHON, **HORSE, "pyproject.toml": '[project]\ndependencies = ["horse"]\n'})
    locked = read_locked(project)
    libraries = find_libraries(project.root, locked, {})
    assert [x.name for x in choose_libraries("how does zebra.paint work", locked, libraries)] == ["zebra"]
    assert [x.name for x in choose_libraries("how do I run fast", locked, libraries)] == ["Horse"]


def test_a_project_is_not_documented_by_an_installed_copy_of_itself(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {**PYTHON, "pyproject.toml": '[project]\nname = "Zebra"\n'})
    locked = read_locked(project)
    assert choose_libraries("how does zebra.paint work", locked, find_libraries(project.root, locked, {})) == []


def test_of_our_own_environment_only_what_the_project_declares_counts(tmp_path: Path) -> None:
    declares = write(tmp_path / "work", {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["click"]\n'})
    locked = read_locked(declares)
    libraries = find_libraries(declares.root, locked, {})
    assert [x.name for x in choose_libraries("click option", locked, libraries)] == ["click"]
    assert [x.name for x in choose_libraries("pydantic model", locked, libraries)] == ["click"]


@pytest.mark.anyio
async def test_an_answer_names_library_and_version_and_flags_another_locked_one(tmp_path: Path) -> None:
    result = await ask(tmp_path, {**PYTHON, "requirements.txt": "zebra==2.0.0\n"}, "how to run away from a lion with zebra")
    hit = result.hits[0]
    assert hit.about is not None
    assert (hit.about.library, hit.about.version, hit.about.entry) == ("pypi/zebra", "2.1.0", "zebra.Zebra.gallop")
    assert OTHER_VERSION in hit.flags
    assert any("2.0.0 is locked" in note for note in result.notes)


@pytest.mark.anyio
async def test_a_library_of_the_project_has_no_flag_and_one_of_our_own_environment_has(tmp_path: Path) -> None:
    ours = await ask(tmp_path, {"a.py": ""}, "pydantic BaseModel model_validate")
    assert NOT_OF_THE_PROJECT in ours.hits[0].flags
    theirs = await ask(tmp_path, {**PYTHON, "requirements.txt": "zebra==2.1.0\n"}, "zebra paint")
    assert theirs.hits[0].flags == ()
    assert theirs.notes == ()


@pytest.mark.anyio
async def test_node_modules_answer_with_their_declarations(tmp_path: Path) -> None:
    result = await ask(tmp_path, NODE, "what does paint of @wild/zebra do")
    assert [(h.about.library, h.about.version, h.about.entry) for h in result.hits[:1] if h.about] == [
        ("npm/@wild/zebra", "3.0.1", "@wild/zebra.paint")
    ]


@pytest.mark.anyio
async def test_a_question_without_any_library_is_told_so(tmp_path: Path) -> None:
    result = await ask(tmp_path, {"a.py": ""}, "how do I cook rice")
    assert result.hits == ()
    assert any("names no library" in note for note in result.notes)


@pytest.mark.anyio
async def test_documentation_is_evidence_that_can_be_fetched(tmp_path: Path) -> None:
    write(tmp_path / "work", {**PYTHON, "main.py": "import zebra\n", "requirements.txt": "zebra==2.1.0\n"})
    async with open_router(roots=[tmp_path / "work"], environ=environ(tmp_path)) as router:
        answer = await router.search({"question": "how to give a zebra new stripes with paint", "intent": "docs"})
        item = next(e for e in answer.evidence if e.library)
        assert (item.library, item.version, item.symbol, item.tier) == ("pypi/zebra", "2.1.0", "zebra.paint", Tier.DOCS)
        assert (item.path, item.start_line) == (None, None)
        assert "pypi/zebra 2.1.0" in router.render(answer)
        fetched = await router.fetch({"ids": [item.id]})
        assert "Give a zebra new stripes." in fetched.items[0].text
        assert "def paint(color: str" in fetched.items[0].text
        gone = await router.fetch({"ids": [item.id.replace("2.1.0", "9.9.9")]})
        assert gone.problems[0].code == "evidence-gone"
