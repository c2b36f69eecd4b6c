"""What the callgraph expert answers: real files of several languages, with decoys that a text search would fall for."""
# ruff: noqa: E501 - the sample files stand on one line each

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.adapters.base import Expert
from search_router.errors import ExpertError, FailureClass
from tests.adapters.local.callgraph_workspace import answers, ask, make_expert, make_projects, shown

pytestmark = pytest.mark.anyio

PYTHON = {
    "shop/__init__.py": "from .client import Session as Session, fetch\n",
    "shop/client.py": (
        "class Session:\n    def send(self, x):\n        return x\n\n    def go(self):\n        return self.send(\n            1\n        )\n\n\n"
        "def fetch(url):\n    return Session().send(url)\n"
    ),
    "shop/sub.py": "from shop.client import Session\n\n\nclass Fast(Session):\n    def run(self):\n        self.send(1)\n        super().send(2)\n",
    "shop/mail.py": "class Mailer:\n    def send(self, to):\n        pass\n\n    def all(self):\n        self.send('x')\n",
    "shop/use.py": (
        "from shop import fetch as get\nfrom shop.client import Session\n\n\ndef a():\n    return get('u')\n\n\n"
        "def b(s: Session):\n    s.send(1)\n\n\ndef c(thing):\n    thing.send(1)\n\n\ndef d():\n    # Session.send(1) and fetch('x')\n    return 'fetch(1)'\n"
    ),
    "shop/only.py": "from shop.client import fetch\n",
    "shop/other.py": "from requests import fetch\n\n\ndef far():\n    return fetch(1)\n",
    "tests/test_client.py": "from shop import Session\n\n\ndef test_send():\n    Session().send(1)\n",
}


async def test_python_callers_of_a_method_come_with_how_they_were_resolved(tmp_path: Path) -> None:
    assert await answers(tmp_path, PYTHON, "who calls Session.send", "Session.send") == [
        "exact app/shop/client.py:6 Session.go call",
        "exact app/shop/client.py:12 fetch call",
        "exact app/shop/sub.py:6 Fast.run call",
        "exact app/shop/sub.py:7 Fast.run call",
        "exact app/shop/use.py:10 b call",
        "exact app/tests/test_client.py:5 test_send call [test]",
        "ambiguous app/shop/use.py:14 c call",
    ]


async def test_python_aliases_and_re_exports_are_followed_and_another_package_s_name_is_left_out(tmp_path: Path) -> None:
    found = await answers(tmp_path, PYTHON, "who calls fetch", "fetch")
    assert found == ["import-resolved app/shop/use.py:6 a call"]


async def test_a_hit_covers_the_whole_call_and_carries_its_score(tmp_path: Path) -> None:
    expert = make_expert(tmp_path / "cache")
    result = await ask(expert, make_projects(tmp_path, {"app": PYTHON}), "who calls Session.send", "Session.send")
    await expert.aclose()
    first, last = result.hits[0], result.hits[-1]
    assert (first.start_line, first.end_line, first.native_score, first.is_exact) == (6, 8, 1.0, True)
    assert (last.native_score, last.is_exact) == (0.2, False)
    assert result.notes == ("callers: 6 exact, 1 ambiguous; ambiguous edges fit by name only",)


async def test_a_question_in_plain_words_names_its_function_too(tmp_path: Path) -> None:
    assert await answers(tmp_path, PYTHON, "who calls fetch") == ["import-resolved app/shop/use.py:6 a call"]


async def test_what_breaks_follows_callers_of_callers_and_names_the_distance(tmp_path: Path) -> None:
    files = {
        "base.py": "def low():\n    pass\n\n\ndef mid():\n    low()\n",
        "top.py": "from base import mid\n\n\ndef high():\n    mid()\n\n\ndef highest():\n    high()\n",
        "test_top.py": "from base import mid\n\n\ndef test_mid():\n    mid()\n",
    }
    assert await answers(tmp_path, files, "what breaks if I change low", "low") == [
        "exact app/base.py:6 mid call",
        "import-resolved app/top.py:5 high call [depth-2]",
        "import-resolved app/test_top.py:5 test_mid call [depth-2] [test]",
    ]


async def test_a_constructor_s_callers_are_the_users_of_its_type(tmp_path: Path) -> None:
    files = {
        "a.py": "def low():\n    pass\n\n\nclass Box:\n    def __init__(self):\n        low()\n",
        "b.py": "from a import Box\n\n\ndef make():\n    return Box()\n",
    }
    assert (await answers(tmp_path, files, "what breaks if low changes", "low"))[1] == "import-resolved app/b.py:5 make call [depth-2]"


async def test_callees_are_definitions_where_they_are_known(tmp_path: Path) -> None:
    found = await answers(tmp_path, PYTHON, "what does Session.go call", "Session.go")
    assert found == ["exact app/shop/client.py:2 Session.send method"]
    found = await answers(tmp_path / "again", {"a.py": "def ff():\n    print(1)\n"}, "what does ff call")
    assert found == ["ambiguous app/a.py:2 ff call"]


async def test_a_class_is_used_by_who_makes_names_extends_and_imports_it(tmp_path: Path) -> None:
    found = await answers(tmp_path, PYTHON, "who uses Session", "Session")
    assert [line.split(" ", 1)[1] for line in found] == [
        "app/shop/client.py:12 fetch call",
        "app/tests/test_client.py:5 test_send call [test]",
        "app/shop/sub.py:4 Fast reference",
        "app/shop/use.py:9 b reference",
        "app/shop/__init__.py:1 None import",
        "app/shop/sub.py:1 None import",
        "app/shop/use.py:2 None import",
        "app/tests/test_client.py:1 None import [test]",
    ]


async def test_typescript_methods_imports_and_barrels(tmp_path: Path) -> None:
    files = {
        "src/cart.ts": "export class Cart {\n  add(x: number) { this.check(x) }\n  check(x: number) {}\n}\nexport function total(c: Cart) { return 1 }\n",
        "src/index.ts": "export { total } from './cart'\nexport * from './cart'\n",
        "src/page.ts": (
            "import { total as sum, Cart } from './index'\nimport * as all from './cart'\n"
            "export function show(c: Cart) {\n  c.add(1)\n  return sum(c)\n}\nfunction late() { return all.total(new Cart()) }\n"
        ),
        "src/set.ts": "class Bag { add(x: number) {} }\nfunction fill(b: Bag, other: any) {\n  b.add(1)\n  other.add(2)\n}\n// cart.add(3); total()\n",
        "src/page.test.ts": "import { Cart } from './cart'\nconst cart = new Cart()\ntest('x', () => { cart.add(1) })\n",
    }
    assert await answers(tmp_path, files, "who calls Cart.add", "Cart.add") == [
        "exact app/src/page.ts:4 show call",
        "exact app/src/page.test.ts:3 None call [test]",
        "ambiguous app/src/set.ts:4 fill call",
    ]
    assert await answers(tmp_path / "b", files, "who calls total", "total") == [
        "import-resolved app/src/page.ts:5 show call",
        "import-resolved app/src/page.ts:7 late call",
    ]


async def test_go_packages_receivers_and_fields(tmp_path: Path) -> None:
    files = {
        "go.mod": "module example.org/shop\n",
        "store/store.go": (
            "package store\n\ntype Store struct{ log *Log }\ntype Log struct{}\n\nfunc Open() *Store { return &Store{} }\n\n"
            "func (s *Store) Save() { s.log.Write() }\nfunc (l *Log) Write() {}\n"
        ),
        "store/more.go": "package store\n\nfunc again() *Store { return Open() }\n",
        "main.go": 'package main\n\nimport "example.org/shop/store"\n\nfunc main() {\n\ts := store.Open()\n\ts.Save()\n}\n',
        "other/other.go": 'package other\n\nimport "os"\n\ntype File struct{}\n\nfunc (f *File) Save() {}\nfunc run(f *File) { f.Save(); os.Open() }\n',
    }
    assert await answers(tmp_path, files, "who calls store.Open", "store.Open") == [
        "import-resolved app/main.go:6 main call",
        "import-resolved app/store/more.go:3 again call",
    ]
    assert await answers(tmp_path / "b", files, "who calls Store.Save", "Store.Save") == ["exact app/main.go:7 main call"]
    assert await answers(tmp_path / "c", files, "who calls Log.Write", "Log.Write") == ["exact app/store/store.go:8 Store.Save call"]


async def test_java_implicit_this_inheritance_and_typed_fields(tmp_path: Path) -> None:
    files = {
        "src/a/Base.java": "package a;\npublic class Base {\n  void ping() {}\n  void run() { ping(); }\n}\n",
        "src/a/Child.java": "package a;\nclass Child extends Base {\n  void go() { this.ping(); ping(); }\n}\n",
        "src/b/User.java": "package b;\nimport a.Base;\nclass User {\n  private Base base;\n  void use() { base.ping(); new Base().ping(); }\n}\n",
        "src/b/Ball.java": "package b;\nclass Ball {\n  void ping() {}\n  void play() { ping(); }\n}\n",
    }
    assert await answers(tmp_path, files, "who calls Base.ping", "Base.ping") == [
        "exact app/src/a/Base.java:4 Base.run call",
        "exact app/src/a/Child.java:3 Child.go call",
        "exact app/src/b/User.java:5 User.use call",
    ]


async def test_rust_paths_impls_and_let_bindings(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "shop"\n',
        "src/lib.rs": "pub mod cart;\nuse crate::cart::{total as sum, Cart};\npub fn price(c: &Cart) -> u32 { c.len() + sum() }\n",
        "src/cart.rs": (
            "pub struct Cart;\nimpl Cart {\n    pub fn new() -> Cart { Cart }\n    pub fn len(&self) -> u32 { 1 }\n}\n"
            "pub fn total() -> u32 {\n    let c = Cart::new();\n    c.len()\n}\n"
        ),
        "src/list.rs": "struct List;\nimpl List {\n    fn len(&self) -> u32 { 2 }\n    fn twice(&self) -> u32 { self.len() * 2 }\n}\n",
    }
    assert await answers(tmp_path, files, "who calls Cart::len", "Cart::len") == [
        "exact app/src/cart.rs:8 total call",
        "exact app/src/lib.rs:3 price call",
    ]
    assert await answers(tmp_path / "b", files, "who calls total", "total") == ["import-resolved app/src/lib.rs:3 price call"]


async def test_c_headers_tie_a_call_to_its_definition(tmp_path: Path) -> None:
    files = {
        "lib/parse.h": "int parse_line(const char *s);\n",
        "lib/parse.c": '#include "parse.h"\nint parse_line(const char *s) { return 1; }\nstatic int twice(void) { return parse_line("a"); }\n',
        "main.c": '#include "lib/parse.h"\n/* parse_line(x) */\nint main(void) { return parse_line("b"); }\n',
    }
    assert await answers(tmp_path, files, "who calls parse_line", "parse_line") == [
        "exact app/lib/parse.c:3 twice call",
        "import-resolved app/main.c:3 main call",
    ]


SMALL = {
    "kotlin": (
        {"A.kt": "package a\nclass Box {\n  fun peek() {}\n  fun all() { peek() }\n}\n", "B.kt": "package a\nclass Bag {\n  fun peek() {}\n  fun run(b: Box) { b.peek() }\n}\n"},
        ["exact app/A.kt:4 Box.all call", "exact app/B.kt:4 Bag.run call"],
    ),
    "csharp": (
        {"A.cs": "class Box {\n  public void peek() {}\n  void All() { this.peek(); }\n}\n", "B.cs": "class Bag {\n  void peek() {}\n  void Run(Box b) { b.peek(); peek(); }\n}\n"},
        ["exact app/A.cs:3 Box.All call", "exact app/B.cs:3 Bag.Run call"],
    ),
    "scala": (
        {"A.scala": "class Box {\n  def peek() = {}\n  def all() = { this.peek() }\n}\n", "B.scala": "class Bag {\n  def peek() = {}\n  def run(b: Box) = { b.peek() }\n}\n"},
        ["exact app/A.scala:3 Box.all call", "exact app/B.scala:3 Bag.run call"],
    ),
    "swift": (
        {"A.swift": "class Box {\n  func peek() {}\n  func all() { self.peek() }\n}\n", "B.swift": "class Bag {\n  func peek() {}\n  func run(b: Box) { b.peek() }\n}\n"},
        ["exact app/A.swift:3 Box.all call", "exact app/B.swift:3 Bag.run call"],
    ),
    "php": (
        {"A.php": "<?php\nclass Box {\n  function peek() {}\n  function all() { $this->peek(); }\n}\n", "B.php": "<?php\nclass Bag {\n  function peek() {}\n  function run(Box $b) { $b->peek(); }\n}\n"},
        ["exact app/A.php:4 Box.all call", "exact app/B.php:4 Bag.run call"],
    ),
    "ruby": (
        {"a.rb": "class Box\n  def peek(x)\n  end\n  def all\n    self.peek(1)\n  end\nend\n", "b.rb": "class Bag\n  def peek(x)\n  end\n  def run\n    b = Box.new\n    b.peek(1)\n  end\nend\n"},
        ["exact app/a.rb:5 Box.all call", "exact app/b.rb:6 Bag.run call"],
    ),
    "cpp": (
        {"a.cpp": "class Box {\n public:\n  void peek() {}\n  void all() { peek(); }\n};\n", "b.cpp": '#include "a.cpp"\nclass Bag {\n  void peek() {}\n  void run(Box& b) { b.peek(); }\n};\n'},
        ["exact app/a.cpp:4 Box.all call", "exact app/b.cpp:4 Bag.run call"],
    ),
    "javascript": (
        {"a.js": "class Box {\n  peek() {}\n  all() { this.peek() }\n}\nmodule.exports = { Box }\n", "b.js": "const { Box } = require('./a')\nclass Bag { peek() {} }\nfunction run() {\n  const b = new Box()\n  b.peek()\n}\n"},
        ["exact app/a.js:3 Box.all call", "exact app/b.js:5 run call"],
    ),
    "tsx": (
        {"a.tsx": "export class Box {\n  peek() {}\n  all() { this.peek() }\n}\n", "b.tsx": "import { Box } from './a'\nclass Bag { peek() {} }\nexport function run(b: Box) { b.peek(); return <p/> }\n"},
        ["exact app/a.tsx:3 Box.all call", "exact app/b.tsx:3 run call"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", SMALL)
async def test_a_method_s_callers_by_self_and_by_type(tmp_path: Path, language: str) -> None:
    files, expected = SMALL[language]
    assert await answers(tmp_path, files, "who calls Box.peek", "Box.peek") == expected


MODULES = {
    "lua": ({"a.lua": "local M = {}\nfunction M.load_it(x) end\nreturn M\n", "b.lua": "local a = require('a')\nlocal function go() a.load_it(1) end\n"}, "import-resolved app/b.lua:2 go call"),
    "elixir": (
        {"lib/a.ex": "defmodule Shop.Cart do\n  def load_it(x), do: x\nend\n", "lib/b.ex": "defmodule Shop.Page do\n  alias Shop.Cart, as: C\n  def go(x) do\n    C.load_it(x)\n  end\nend\n"},
        "import-resolved app/lib/b.ex:4 Shop.Page.go call",
    ),
    "haskell": ({"Shop/Cart.hs": "module Shop.Cart where\nload_it x = x\n", "Main.hs": "module Main where\nimport qualified Shop.Cart as C\ngo x = C.load_it x\n"}, "import-resolved app/Main.hs:3 go call"),
    "bash": ({"lib.sh": "load_it() { :; }\n", "run.sh": "source ./lib.sh\ngo() {\n  load_it 1\n}\n"}, "import-resolved app/run.sh:3 go call"),
}  # fmt: skip


@pytest.mark.parametrize("language", MODULES)
async def test_a_module_s_function_is_resolved_by_its_import(tmp_path: Path, language: str) -> None:
    files, expected = MODULES[language]
    assert await answers(tmp_path, files, "who calls load_it", "load_it") == [expected]


async def test_consumers_of_a_package_across_projects(tmp_path: Path) -> None:
    projects = make_projects(
        tmp_path,
        {
            "util": {"package.json": '{"name": "@acme/util"}', "src/index.ts": "export * from './format'\n", "src/format.ts": "export function formatPrice(x: number) { return x }\n"},
            "web": {
                "package.json": '{\n  "dependencies": {\n    "@acme/util": "^1.0.0"\n  }\n}\n',
                "src/page.ts": "import { formatPrice } from '@acme/util'\nexport function page() { return formatPrice(1) }\n",
                "src/mine.ts": "function formatPrice(x: number) { return x }\nexport const z = formatPrice(2)\n",
            },
        },
    )  # fmt: skip
    expert = make_expert(tmp_path / "cache")
    consumers = shown(await ask(expert, projects, "who consumes the @acme/util package"))
    callers = shown(await ask(expert, projects, "who calls format.formatPrice", "format.formatPrice"))
    one_project = shown(await ask(expert, projects[1:], "who consumes the @acme/util package"))
    await expert.aclose()
    assert consumers == ["exact web/package.json:3 None dependency", "exact web/src/page.ts:1 None import"]
    assert callers == ["import-resolved web/src/page.ts:2 page call"]
    assert one_project == consumers


async def test_modules_that_import_a_module_of_the_project(tmp_path: Path) -> None:
    found = await answers(tmp_path, PYTHON, "which modules import shop.client", "shop.client")
    assert found == [
        "exact app/shop/__init__.py:1 None import",
        "exact app/shop/only.py:1 None import",
        "exact app/shop/sub.py:1 None import",
        "exact app/shop/use.py:2 None import",
    ]


async def test_edits_are_seen_and_scopes_narrow_what_is_found(tmp_path: Path) -> None:
    projects = make_projects(tmp_path, {"app": PYTHON})
    expert = make_expert(tmp_path / "cache")
    assert shown(await ask(expert, projects, "who calls fetch", "fetch", path="tests")) == []
    (tmp_path / "app/shop/only.py").write_text("from shop.client import fetch\n\n\ndef new():\n    fetch(2)\n")
    found = shown(await ask(expert, projects, "who calls fetch", "fetch", path="shop/only.py"))
    await expert.aclose()
    assert found == ["import-resolved app/shop/only.py:5 new call"]


async def test_nothing_named_and_nothing_found_are_said_apart(tmp_path: Path) -> None:
    projects = make_projects(tmp_path, {"app": PYTHON})
    expert = make_expert(tmp_path / "cache")
    unnamed = await ask(expert, projects, "what breaks if the session handling changes")
    unknown = await ask(expert, projects, "who calls no_such_thing", "no_such_thing")
    uncalled = await ask(expert, projects, "who calls Mailer.all", "Mailer.all")
    await expert.aclose()
    assert (unnamed.hits, unnamed.notes) == ((), ("nothing in the question names a symbol, a package or a module",))
    assert (unknown.hits, unknown.notes) == ((), ("no definition and no import of that name",))
    assert (uncalled.hits, uncalled.notes, uncalled.partial) == ((), (), None)


async def test_a_malformed_manifest_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    expert = make_expert(tmp_path / "cache")
    projects = make_projects(tmp_path, {"app": {**PYTHON, "package.json": "{"}})
    result = await ask(expert, projects, "who calls fetch", "fetch")
    await expert.aclose()
    assert len(result.hits) == 1
    assert any("app/package.json is malformed" in note for note in result.notes)


async def test_it_is_an_expert_and_refuses_paths_outside(tmp_path: Path) -> None:
    expert = make_expert(tmp_path / "cache")
    contract: Expert = expert
    assert (contract.card.id, contract.card.engine, contract.card.precision_class.value) == ("callgraph", "tree-sitter", "syntactic")
    assert (await expert.health(())).available
    with pytest.raises(ExpertError) as caught:
        await ask(expert, make_projects(tmp_path, {"app": PYTHON}), "who calls fetch", "fetch", path="../x")
    assert caught.value.failure is FailureClass.REJECTED
    await expert.aclose()
    await expert.aclose()
