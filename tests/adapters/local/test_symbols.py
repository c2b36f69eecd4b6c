"""What the symbols expert answers, and in which order."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import pytest

from search_router.adapters.base import Expert
from search_router.adapters.local.symbols import SymbolsExpert
from search_router.config.experts import SymbolsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Hit, Intent, PrecisionClass, Project, QueryForm, SubQuery

pytestmark = pytest.mark.anyio

SHOP = {
    "shop/client.py": """class Session:
    timeout = 5

    def request(self, url):
        return send_request(url)

    def _close_connection(self):
        pass


def send_request(url):
    session = Session()
    return session.request(url)
""",
    "shop/retry.py": "from shop.client import Session\n\n\ndef retry_failed_requests(session: Session):\n    session.request('x')\n",
    "tests/test_client.py": "from shop.client import Session\n\n\ndef test_session_request():\n    Session().request('y')\n",
    "web/cart.ts": "export class CartStore {\n  getItem(id: string): Item { return load(id) }\n}\n",
}
BILLING = {
    "billing/run.py": "from shop.client import Session\n\n\ndef run():\n    return Session()\n\n\ndef stop():\n    Session.request\n",
    "lib/session.go": "package lib\n\nfunc Request(url string) {}\n",
}


def config(**changes: object) -> SymbolsConfig:
    values: dict[str, object] = {
        "kind": "symbols",
        "precision_class": PrecisionClass.SYNTACTIC,
        "engine": "tree-sitter",
        "intents": (Intent.TYPED_SYMBOL,),
        "cap_ms": 2500,
        "max_file_bytes": 65536,
        "workers": 2,
    }
    return SymbolsConfig.model_validate(values | changes)


@pytest.fixture
async def expert(tmp_path: Path) -> AsyncGenerator[SymbolsExpert]:
    made = SymbolsExpert("symbols", config(), tmp_path / "cache")
    yield made
    await made.aclose()


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Project, ...]:
    made: list[Project] = []
    for name, files in (("shop", SHOP), ("billing", BILLING)):
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        made.append(Project(name, tmp_path / name, "directory"))
    return tuple(made)


def ask(
    projects: tuple[Project, ...],
    form: QueryForm,
    *terms: str,
    text: str = "",
    intent: Intent = Intent.UNKNOWN,
    path: str | None = None,
    language: str | None = None,
    limit: int = 20,
    budget_ms: int = 20_000,
) -> ExpertCall:
    return ExpertCall("symbols", SubQuery(form, terms, text), projects, path, language, limit, budget_ms, 900, "a test", intent)


def shown(result: ExpertResult) -> list[str]:
    """One short line a hit: `=` definition, `-` use, `~` when it is not exact."""
    return [line(hit) for hit in result.hits]


def line(hit: Hit) -> str:
    sign = ("=" if hit.is_definition else "-") + ("" if hit.is_exact else "~")
    return f"{sign} {hit.project}/{hit.path}:{hit.start_line}-{hit.end_line} {hit.kind} {hit.symbol}"


async def test_it_is_an_expert(expert: SymbolsExpert) -> None:
    contract: Expert = expert
    assert contract.card.id == "symbols" and contract.card.engine == "tree-sitter"
    assert contract.card.languages and {"python", "haskell"} <= contract.card.languages
    health = await expert.health(())
    assert health.available and health.version and health.details["python"] and health.reason == "19 of 19 languages"


async def test_a_symbol_gives_its_definition_and_then_its_uses(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "Session"))
    assert shown(result) == [
        "= shop/shop/client.py:1-8 class Session",
        "- billing/billing/run.py:5-5 call run",
        "- billing/billing/run.py:1-1 import None",
        "- billing/billing/run.py:9-9 use stop",
        "- shop/shop/client.py:12-12 call send_request",
        "- shop/shop/retry.py:1-1 import None",
        "- shop/shop/retry.py:4-4 type retry_failed_requests",
        "- shop/tests/test_client.py:5-5 call test_session_request",
        "- shop/tests/test_client.py:1-1 import None",
    ]
    assert result.partial is None and result.notes == () and result.hits[0].is_definition
    assert result.hits[0].content_hash == sha256(SHOP["shop/client.py"].encode()).hexdigest()


@pytest.mark.parametrize(
    "term", ["Session.request", "Session::request", "Session#request", "client.Session.request", "shop.client.Session.request()"]
)
async def test_a_qualified_name_finds_only_what_it_qualifies(expert: SymbolsExpert, projects: tuple[Project, ...], term: str) -> None:
    result = await expert.search(ask(projects, QueryForm.SYMBOL, term))
    assert [line(hit) for hit in result.hits if hit.is_definition] == ["= shop/shop/client.py:4-5 method Session.request"]


async def test_qualifiers_that_nothing_has_leave_the_name_as_a_guess(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "Pool.request"))
    assert [line(hit) for hit in result.hits if hit.is_definition] == ["=~ shop/shop/client.py:4-5 method Session.request"]


async def test_a_name_in_other_spelling_is_found_and_not_called_exact(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "cart_store"))
    assert shown(result) == ["=~ shop/web/cart.ts:1-3 class CartStore"]


async def test_a_literal_is_searched_by_its_identifiers(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.LITERAL, "return send_request(url)", limit=1))
    assert shown(result) == ["= shop/shop/client.py:11-13 function send_request"]
    phrase = await expert.search(ask(projects, QueryForm.LITERAL, "closed by peer"))
    assert phrase.hits == () and phrase.notes == ("nothing in the question looks like an identifier",)


async def test_for_impact_uses_come_first_from_every_project_in_turn(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "Session", intent=Intent.CROSS_REPO_IMPACT))
    assert [hit.project for hit in result.hits] == ["shop", "billing", "billing", "billing", "shop", "shop", "shop", "shop", "shop"]
    assert [hit.is_definition for hit in result.hits] == [False] * 8 + [True]
    short = await expert.search(ask(projects, QueryForm.SYMBOL, "Session", intent=Intent.CROSS_REPO_IMPACT, limit=5))
    assert [hit.is_definition for hit in short.hits] == [False] * 4 + [True]


async def test_words_find_the_names_that_are_made_of_them(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.TEXT, text="how are failed requests retried?"))
    assert shown(result)[0] == "=~ shop/shop/retry.py:4-5 function retry_failed_requests"
    closed = await expert.search(ask(projects, QueryForm.KEYWORDS, "closing", "connections"))
    assert shown(closed)[0] == "=~ shop/shop/client.py:7-8 method Session._close_connection"
    scores = [hit.native_score or 0 for hit in result.hits]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0


async def test_an_identifier_inside_a_question_is_looked_up_first(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.TEXT, text="what does send_request do with the session timeout"))
    assert shown(result)[0] == "= shop/shop/client.py:11-13 function send_request"
    assert len({line(hit) for hit in result.hits}) == len(result.hits)


async def test_tests_come_after_code_unless_they_are_asked_for(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    plain = await expert.search(ask(projects, QueryForm.TEXT, text="session request"))
    assert not (plain.hits[0].path or "").startswith("tests/")
    asked = await expert.search(ask(projects, QueryForm.TEXT, text="test of the session request"))
    assert (asked.hits[0].path or "").startswith("tests/")


async def test_a_regular_expression_matches_names(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    result = await expert.search(ask(projects, QueryForm.REGEX, "^(?i)re(try|quest)"))
    assert {hit.symbol for hit in result.hits} == {"Session.request", "retry_failed_requests", "Request"}
    assert "names of definitions only" in result.notes[0]
    with pytest.raises(ExpertError, match="cannot be searched") as refused:
        await expert.search(ask(projects, QueryForm.REGEX, "(("))
    assert refused.value.failure is FailureClass.REJECTED


async def test_the_scope_prunes_files_languages_and_projects(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    for form, term in ((QueryForm.SYMBOL, "request"), (QueryForm.KEYWORDS, "request"), (QueryForm.REGEX, "(?i)request")):
        folder = await expert.search(ask(projects, form, term, path="shop/"))
        assert folder.hits and all((hit.path or "").startswith("shop/") for hit in folder.hits)
        file = await expert.search(ask(projects, form, term, path="shop/retry.py"))
        assert {hit.path for hit in file.hits} <= {"shop/retry.py"}
        go = await expert.search(ask(projects, form, term, language="go"))
        assert {hit.path for hit in go.hits} == {"lib/session.go"}
        one = await expert.search(ask(projects[1:], form, term))
        assert one.hits and {hit.project for hit in one.hits} == {"billing"}
    prefix = await expert.search(ask(projects, QueryForm.SYMBOL, "Session", path="sho"))
    assert prefix.hits == ()
    unknown = await expert.search(ask(projects, QueryForm.SYMBOL, "Session", language="cobol"))
    assert unknown.hits == () and "symbols reads no cobol" in unknown.notes
    with pytest.raises(ExpertError, match="leaves the project"):
        await expert.search(ask(projects, QueryForm.SYMBOL, "Session", path="../x"))


async def test_an_edit_shows_at_the_next_question(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    await expert.search(ask(projects, QueryForm.SYMBOL, "Session"))
    (projects[0].root / "shop/client.py").write_text("\n\nclass Session: pass\n")
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "Session"))
    assert shown(result)[0] == "= shop/shop/client.py:3-3 class Session"
    assert result.hits[0].content_hash == sha256(b"\n\nclass Session: pass\n").hexdigest()


async def test_too_little_time_is_a_timeout_first_and_whole_later(tmp_path: Path, projects: tuple[Project, ...]) -> None:
    for number in range(250):
        (projects[0].root / f"m{number}.py").write_text(f"def f{number}(): pass\n" * 30)
    expert = SymbolsExpert("symbols", config(), tmp_path / "cache")
    with pytest.raises(ExpertError, match="indexing goes on") as late:
        await expert.search(ask(projects[:1], QueryForm.SYMBOL, "f7", budget_ms=1))
    assert late.value.failure is FailureClass.TIMEOUT
    assert len((await expert.search(ask(projects[:1], QueryForm.SYMBOL, "f7"))).hits) == 20
    short = await expert.search(ask(projects[:1], QueryForm.SYMBOL, "f7", budget_ms=1))
    assert short.hits and short.partial and "ask again" in short.partial
    await expert.aclose()


async def test_what_is_ready_is_answered_while_indexing_goes_on(tmp_path: Path, projects: tuple[Project, ...]) -> None:
    text = "".join(f"def g{i}(x):\n    return h{i}(x)\n" for i in range(300))
    for number in range(400):
        (projects[0].root / f"m{number}.py").write_text(f"def f{number}(): pass\n{text}")
    expert = SymbolsExpert("symbols", config(), tmp_path / "cache")
    said: set[str] = set()
    call = ask(projects[:1], QueryForm.SYMBOL, "g7", budget_ms=50)
    while expert.index.progress(projects[0]) != (404, 404):
        try:
            said.add((await expert.search(call)).partial or "")
        except ExpertError as error:
            assert error.failure is FailureClass.TIMEOUT
    assert any(re.fullmatch(r"indexed \d+ of 404 files; ask again for the rest", partial) for partial in said)
    whole = await expert.search(ask(projects[:1], QueryForm.SYMBOL, "g7", limit=1000))
    assert whole.partial is None and len(whole.hits) == 400
    await expert.aclose()


async def test_a_project_that_fails_is_named_and_the_others_answer(
    expert: SymbolsExpert, projects: tuple[Project, ...], tmp_path: Path
) -> None:
    broken = Project("broken", tmp_path, "git")
    result = await expert.search(ask((*projects, broken), QueryForm.SYMBOL, "Session"))
    assert result.hits and result.partial == "not searched: broken"
    assert any(note.startswith("broken: ") for note in result.notes)
    with pytest.raises(ExpertError):
        await expert.search(ask((broken,), QueryForm.SYMBOL, "Session"))


async def test_files_that_have_no_symbols_are_counted_in_a_note(expert: SymbolsExpert, projects: tuple[Project, ...]) -> None:
    (projects[0].root / "huge.py").write_text("x = 1\n" * 20_000)
    (projects[0].root / "blob.py").write_bytes(b"a\0b")
    result = await expert.search(ask(projects, QueryForm.SYMBOL, "absent"))
    assert result.hits == ()
    assert result.notes == ("shop: 2 files are not indexed (1 binary, 1 larger than 65536 bytes): blob.py, huge.py",)


async def test_the_order_is_the_same_in_a_fresh_process_and_after_edits(tmp_path: Path, projects: tuple[Project, ...]) -> None:
    first = SymbolsExpert("symbols", config(), tmp_path / "one")
    calls = [ask(projects, QueryForm.SYMBOL, "request", "Session"), ask(projects, QueryForm.TEXT, text="session requests in the client")]
    client = projects[0].root / "shop/client.py"
    whole = client.read_text()
    for text in ("", "class Other: pass\n", whole):
        client.write_text(text)
        edited = [shown(await first.search(call)) for call in calls]
    second = SymbolsExpert("symbols", config(), tmp_path / "two")
    assert [shown(await second.search(call)) for call in calls] == edited
    await first.aclose()
    await second.aclose()
    await second.aclose()


async def test_nothing_found_in_a_part_of_the_index_is_no_empty_answer(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    body = "".join(f"def step_{n}(order): return compute(order, {n})\n" for n in range(400))
    for number in range(600):
        (tmp_path / "large" / f"m{number}.py").write_text(f"def f{number}(): pass\n{body}")
    expert = SymbolsExpert("symbols", config(), tmp_path / "cache")
    project = Project("large", tmp_path / "large", "directory")
    with pytest.raises(ExpertError) as raised:
        await expert.search(ask((project,), QueryForm.SYMBOL, "zebra", budget_ms=1500))
    assert raised.value.failure is FailureClass.TIMEOUT and "indexing goes on" in str(raised.value)
    await expert.aclose()
