"""The table after any sequence of edits equals a table of the files that are left."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.symbol_packing import compact_syntax
from search_router.adapters.local.symbol_table import IndexedFile, PathFacts, SymbolTable, file_number
from search_router.adapters.local.syntax import extract

TEXTS = [
    "def read_file(): open()\nclass Reader: pass\n",
    "def read_file(): Reader()\n",
    "import Reader\nREAD_FILE = 1\n",
    "class Cache:\n    def readFile(self): self.read_file()\n",
]
PATHS = ["a.py", "pkg/b.py", "tests/test_c.py", "reader.py"]
NAMES = ["read_file", "Reader", "readFile", "READ_FILE", "open", "absent"]


def indexed(path: str, text: str) -> IndexedFile:
    return IndexedFile(path, "python", f"blob of {text}", "hash", compact_syntax(extract(text.encode(), "python")))


def seen_through(table: SymbolTable) -> list[object]:
    """Everything a reader could ask, without the order that only the history decides."""
    answers: list[object] = [len(table), table.definition_count, table.defined_names()]
    for name in NAMES:
        answers.append(sorted((f.file.path, f.definition.qualified) for f in table.definitions_named(name)))
        answers.append(sorted((f.file.path, f.uses) for f in table.uses_of(name)))
    answers.append([[d.qualified for d in table.definitions_in(path, ("read", "file"))] for path in PATHS])
    for stem in ("read", "file", "cach"):
        for places in (table.places_with_stem(stem), table.outlines_with_stem(stem)):
            files = table.files_of(places)
            found = [table.at(place) for place in places if file_number(place) in files]
            answers.append(sorted((f.file.path, f.definition.qualified) for f in found))
    return answers


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.one_of(st.none(), st.sampled_from(TEXTS))), max_size=40))
def test_any_history_of_edits_gives_the_table_of_what_is_left(edits: list[tuple[str, str | None]]) -> None:
    table, left = SymbolTable(), dict[str, str]()
    for path, text in edits:
        if text is None:
            table.remove(path)
            left.pop(path, None)
        else:
            table.put(indexed(path, text))
            left[path] = text
    fresh = SymbolTable()
    for path, text in left.items():
        fresh.put(indexed(path, text))
    assert seen_through(table) == seen_through(fresh)


def test_a_thousand_edits_of_one_file_do_not_pile_up() -> None:
    table = SymbolTable()
    for number in range(1000):
        table.put(indexed("a.py", TEXTS[number % 2]))
    assert len(table) == 1 and [f.file.path for f in table.definitions_named("read_file")] == ["a.py"]
    assert len(list(table.files())) == 1


def test_a_file_that_comes_back_as_it_was_is_not_entered_again_and_the_generation_only_grows() -> None:
    table, generations = SymbolTable(), [0]
    for number in range(600):
        for path in ("a.py", "b.py"):
            table.put(indexed(path, TEXTS[number % 2]))
        generations.append(table.generation)
    assert generations == sorted(set(generations))
    assert len(table._files) == 4
    for number in range(2000):
        table.put(indexed("a.py", f"def f{number}(): pass\n"))
        generations.append(table.generation)
    assert generations == sorted(set(generations))


def test_a_line_belongs_to_the_innermost_definition_around_it() -> None:
    file = indexed("a.py", "import x\nclass A:\n    def f(self):\n        def g():\n            pass\n        return g\n")
    around = [file.enclosing(line) for line in range(1, 8)]
    assert [d.qualified if d else None for d in around] == [None, "A", "A.f", "A.f.g", "A.f.g", "A.f", None]


def test_a_path_tells_its_role_and_its_words() -> None:
    facts = PathFacts.of("tests/net/test_http_client.py")
    assert facts.test and not facts.foreign and {"http", "client", "net"} <= {*facts.words, "client"}
    assert PathFacts.of("pkg/client/__init__.py").parts == ("pkg", "client")
    assert PathFacts.of("node_modules/a/index.js").foreign


def test_the_innermost_definition_around_a_line_is_found_in_files_of_any_length() -> None:
    text = "class A:\n    def one(self):\n        def two():\n            return 1\n        return two\n\n    x = 1\n\nTOP = A()\n"
    file = IndexedFile("a.py", "python", "b", "h", compact_syntax(extract(text.encode(), "python")))
    around = [found.qualified if (found := file.enclosing(line)) else None for line in range(1, 10)]
    assert around == ["A", "A.one", "A.one.two", "A.one.two", "A.one", "A", "A.x", None, "TOP"]

    long = "def f():\n    g()\n" * 20_000 + "g()\n"
    file = IndexedFile("b.py", "python", "c", "h", compact_syntax(extract(long.encode(), "python")))
    started = time.process_time()
    assert all(file.enclosing(line) for line in range(2, 40_000, 2))
    assert file.enclosing(40_001) is None
    assert time.process_time() - started < 2
