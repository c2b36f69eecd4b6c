from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from search_router.router.plan import make_sub_query
from search_router.router.tokens import analyse_question
from search_router.schema import Intent
from search_router.terminal import print_answer
from tests.router.ranking import CARDS
from tests.scripted_router import hit, scripted_router


def test_a_file_name_in_a_question_reaches_history_and_the_words() -> None:
    tokens = analyse_question("when was terminal.py added")
    history = replace(CARDS["history"], serves_history=True)
    assert "terminal.py" in make_sub_query(history, Intent.HISTORY, tokens).terms
    assert "terminal.py" in make_sub_query(CARDS["grep"], Intent.HISTORY, tokens).terms


@pytest.mark.anyio
async def test_the_command_line_shows_the_id_that_fetch_takes(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, {"a": [{"when": "*", "hits": [hit()]}]}) as router:
        answer = await router.search({"question": "how does the application start"})
        shown = io.StringIO()
        print_answer(Console(file=shown, width=4000), answer)
        assert answer.evidence[0].id in shown.getvalue()
        assert (await router.fetch({"ids": [answer.evidence[0].id]})).items
