"""Import statements of every language in one form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.grammars import SYNTAX_LANGUAGES
from search_router.adapters.local.import_statements import read_imports
from search_router.adapters.local.syntax import extract

STATEMENTS = [
    ("python", "import a.b as c, d.e", ["a.b::c", "d.e::d.e"]),
    ("python", "from ..x import (y as z,  # why\n  w)", ["..x:w:w", "..x:y:z"]),
    ("python", "from m import *", ["m:*:"]),
    ("javascript", "import D, {a as b, c} from './m.js'", ["./m.js:a:b", "./m.js:c:c", "./m.js:default:D"]),
    ("javascript", "import * as ns from \"m\"\nimport 'side'", ["m::ns", "side::"]),
    ("javascript", "const {a, b: c} = require('m'), d = require('n').e", ["m:a:a", "m:b:c", "n:e:d"]),
    ("typescript", "import type {T} from 'm'\nexport * from 'n'\nexport {a as b} from 'o'", ["m:T:T", "n:*:", "o:a:b"]),
    ("tsx", "const x = await import('./lazy')", ["./lazy::"]),
    ("go", 'package p\nimport (\n  k "a/b"\n  "c.org/d/v2"\n  . "e"\n  _ "f"\n)', ["a/b::k", "c.org/d/v2::d", "e:*:", "f::"]),
    ("rust", "pub use a::{b as c, d::{self, e}, f::*};", ["a.d::d", "a.d:e:e", "a.f:*:", "a:b:c"]),
    ("rust", "extern crate z as y;\nmod sub;", ["self.sub::sub", "z::y"]),
    ("java", "import a.b.C;\nimport static a.B.m;\nimport q.*;", ["a.B:m:m", "a.b:C:C", "q:*:"]),
    ("kotlin", "import a.b.C as D", ["a.b:C:D"]),
    ("scala", "import a.b.{C => D, E}\nimport q._", ["a.b:C:D", "a.b:E:E", "q:*:"]),
    ("c", '#include "x/y.h"\n#include <z.h>', ["x/y.h:*:", "z.h:*:"]),
    ("cpp", '#include "x/y.hpp"', ["x/y.hpp:*:"]),
    ("csharp", "using A.B;\nusing static C.D;\nusing X = E.F;", ["A.B:*:", "C.D:*:", "E:F:X"]),
    ("ruby", "require 'json'\nrequire_relative 'a/b'", ["./a/b:*:", "json:*:"]),
    (
        "php",
        "<?php\nuse A\\B\\{C, D as E};\nuse function F\\g;\nrequire __DIR__ . '/x.php';",
        ["./x.php:*:", "A.B:C:C", "A.B:D:E", "F:g:g"],
    ),
    ("swift", "import Foo\nimport struct Bar.Baz", ["Bar:Baz:Baz", "Foo:*:"]),
    ("elixir", "alias X.Y, as: Z\nalias Q.{R, S}\nimport T.U\nuse V\nrequire W", ["Q:R:R", "Q:S:S", "T.U:*:U", "V:*:V", "W::W", "X:Y:Z"]),
    ("haskell", "module M where\nimport qualified A.B as C (x)\nimport D hiding (y)", ["A.B::C", "A.B:x:x", "D:*:", "D::D"]),
    ("lua", "local x = require('a.b')\nlocal f = require 'c'.d", ["a.b::x", "c:d:f"]),
    ("bash", 'source ./a.sh\n. "$DIR/b.sh"', ["./a.sh:*:", "b.sh:*:"]),
]


@pytest.mark.parametrize(("language", "source", "expected"), STATEMENTS)
def test_imports_are_read_from_the_tree(language: str, source: str, expected: list[str]) -> None:
    found = {f"{i.module}:{i.name}:{i.local}" for i in extract(source.encode(), language).edges.imports}
    assert sorted(found) == expected


def test_every_grammar_has_a_statement_here() -> None:
    assert {language for language, _, _ in STATEMENTS} == SYNTAX_LANGUAGES


@given(st.sampled_from(sorted(SYNTAX_LANGUAGES)), st.text(max_size=80))
def test_any_text_is_read_without_an_error(language: str, text: str) -> None:
    for prefix in ("", "import ", "from ", "use ", "#include "):
        assert all(found.module for found in read_imports(prefix + text, language, 1))
