"""Traps that a search over notes falls into, each planted in a folder of its own; and what time and filters do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from search_router.adapters.local.code_segment import Segment
from search_router.adapters.local.knowledge_document import derive_document
from search_router.adapters.local.knowledge_rank import fuse_documents
from search_router.adapters.local.knowledge_retrieve import Part, Place, Retrieved
from search_router.router.opening import open_router
from search_router.schema import StageFacts
from tests.adapters.local.knowledge_workspace import call_for, default_config, expert_over, paths, write
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio

TWINS = {
    "adr/0003-queue.md": "# 3. Use RabbitMQ as the message queue\n\n## Status\n\nSuperseded by [7](0007-queue.md)\n\n## Decision\n\n"
    "The message queue is RabbitMQ. The message queue keeps messages for a day. We chose the message queue for its routing.\n",
    "adr/0007-queue.md": "# 7. Use NATS as the message queue\n\n## Status\n\nAccepted\n\n## Decision\n\nThe message queue is NATS.\n",
    "adr/0008-cache.md": "# 8. Cache answers\n\n## Status\n\nAccepted\n\n## Decision\n\nAnswers are cached for a minute.\n",
}
FLOOD = {
    **{
        f"notes/2026-0{month}-{day:02}-standup.md": f"# Standup 2026-0{month}-{day:02}\n\nTalked about payments retries: the retry limit of"
        f" payments is discussed again, payments retry limit maybe {day}.\n"
        for month in (3, 4, 5)
        for day in range(1, 12)
    },
    "services/payments.md": "---\ncomponent: payments\nstatus: current\ndate: 2024-01-10\n---\n# Payments service\n\nTakes money.\n\n"
    "## Retries\n\nThe retry limit of payments is five, with backoff.\n",
    "services/payments-old.md": "---\ncomponent: payments\nstatus: superseded\nsuperseded_by: payments.md\n---\n# Payments service (old)"
    "\n\n## Retries\n\nThe retry limit of payments is three.\n",
}
WALL = " ".join(f"Sentence {n} tells how the office plants are watered on floor {n} by the facility team." for n in range(300)).replace(
    "Sentence 190 ", "The emergency shutdown of the cooling pump needs the red key. Sentence 190 "
)
BROAD = "# Operations handbook\n\n" + "\n".join(
    f"## Topic {n}\n\n" + f"General words about service number {n}, deployment, alerts and people on call. " * 12 + "\n" for n in range(40)
)
NARROW = "\n## Rotating the signing key\n\nRun `rotate-key --force` on the bastion, then restart the signer.\n"


async def first(folder: Path, files: dict[str, str], question: str) -> list[str]:
    project = write(folder / "work", files)
    async with expert_over(folder) as expert:
        return paths(await expert.search(call_for(question, project)))


async def test_a_superseded_twin_stands_behind_its_successor(tmp_path: Path) -> None:
    found = await first(tmp_path, TWINS, "which message queue do we use")
    assert found[:2] == ["adr/0007-queue.md", "adr/0003-queue.md"]


@pytest.mark.parametrize("old", ["adr/0001-queue.md", "adr/0099-queue.md"], ids=["the old one sorts first", "the old one sorts last"])
@pytest.mark.parametrize("told_by", ["old", "new"])
async def test_a_superseded_twin_stands_behind_whoever_says_so_and_whatever_it_is_called(tmp_path: Path, old: str, told_by: str) -> None:
    said = "superseded_by: 0050-queue.md\n" if told_by == "old" else ""
    says = f"supersedes: {old.rpartition('/')[2]}\n" if told_by == "new" else ""
    body = "# Message queue\n\nThe message queue for jobs is {}. The message queue keeps a message for a day.\n"
    files = {
        old: f"---\nowner: a\n{said}---\n{body.format('RabbitMQ')}",
        "adr/0050-queue.md": f"---\nowner: a\n{says}---\n{body.format('NATS')}",
        "adr/0060-cache.md": "# Cache\n\nAnswers are cached.\n",
    }
    assert (await first(tmp_path, files, "message queue for jobs"))[:2] == ["adr/0050-queue.md", old]


@pytest.mark.parametrize("living", ["aa.md", "zz/payments.md"])
@pytest.mark.parametrize("count", [3, 60])
async def test_a_flood_of_any_size_stands_behind_a_living_document_of_any_name(tmp_path: Path, living: str, count: int) -> None:
    notes = {
        f"notes/2025-{1 + n % 12:02}-{1 + n % 28:02}-{n}.md": f"# Notes\n\nThe payments retry limit: payments retry limit again, {n}.\n"
        for n in range(count)
    }
    files = {**notes, living: "---\ncomponent: payments\n---\n# Payments\n\n## Retries\n\nThe retry limit of payments is five.\n"}
    assert (await first(tmp_path, files, "what is the payments retry limit"))[0] == living


async def test_an_answer_without_documents_says_why(tmp_path: Path) -> None:
    project = write(tmp_path / "work", TWINS)
    async with expert_over(tmp_path) as expert:
        filtered = await expert.search(call_for("message queue", project, tags=["nobody"]))
        unknown = await expert.search(call_for("xylophone", project))
    assert filtered.hits == () and any("let in none of 3 document(s)" in note for note in filtered.notes)
    assert unknown.hits == () and {s.stage: s.reason for s in unknown.stages}["lexical"] == "no word of the question stands there"
    assert [s.in_ > 0 for s in unknown.stages if s.stage == "lexical"] == [True]


async def test_a_superseded_record_without_a_matching_successor_is_still_found(tmp_path: Path) -> None:
    files = {**TWINS, "adr/0007-queue.md": "# 7. Events\n\n## Status\n\nAccepted\n\nSomething else entirely.\n"}
    found = await first(tmp_path, files, "RabbitMQ routing day")
    assert found[0] == "adr/0003-queue.md"


async def test_a_flood_of_dated_notes_stands_behind_the_living_document(tmp_path: Path) -> None:
    found = await first(tmp_path, FLOOD, "what is the payments retry limit")
    assert found[0] == "services/payments.md"


async def test_a_superseded_living_document_is_never_lifted(tmp_path: Path) -> None:
    files = {k: v for k, v in FLOOD.items() if k != "services/payments.md"}
    found = await first(tmp_path, files, "what is the payments retry limit")
    assert found[0].startswith("notes/")


async def test_a_question_about_a_day_gets_the_note_of_that_day(tmp_path: Path) -> None:
    found = await first(tmp_path, FLOOD, "payments retry standup 2026-03-07")
    assert found[0].startswith("notes/")


async def test_a_wall_of_text_is_found_at_the_sentence(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"wall.txt": WALL, "other.md": "# Pumps\n\nA pump moves water.\n"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("emergency shutdown of the cooling pump", project))
    hit = result.hits[0]
    assert hit.path == "wall.txt"
    assert hit.about is not None
    assert "«emergency» «shutdown»" in hit.about.snippet
    assert hit.about.heading is None
    assert "chunked" in hit.about.signals


async def test_a_narrow_question_is_answered_by_the_section_of_a_broad_document(tmp_path: Path) -> None:
    files = {"handbook.md": BROAD + NARROW, "keys.md": "# Keys of the office\n\nThe key of the door lies in the drawer.\n"}
    project = write(tmp_path / "work", files)
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("how do I rotate the signing key", project))
    hit = result.hits[0]
    assert (hit.path, hit.about.heading if hit.about else "") == ("handbook.md", "Rotating the signing key")
    text = (project.root / "handbook.md").read_text().split("\n")
    assert text[(hit.start_line or 0) - 1] == "## Rotating the signing key"


async def test_a_document_is_one_row_however_many_sections_match(tmp_path: Path) -> None:
    found = await first(tmp_path, {"handbook.md": BROAD}, "deployment alerts on call")
    assert found == ["handbook.md"]


DATED = {
    "a.md": "---\nvalid_until: 2026-01-31\n---\n# Freeze window\n\nDeploy freeze in January.\n",
    "b.md": "+++\nvalid_from = 2026-12-01\n+++\n# Freeze window next\n\nDeploy freeze in December.\n",
    "c.md": "---\nvalid_from: 2026-05-01\nvalid_until: 2026-06-30\n---\n# Freeze window now\n\nDeploy freeze in June.\n",
}


async def test_expired_and_pending_documents_are_hidden_unless_asked(tmp_path: Path) -> None:
    project = write(tmp_path / "work", DATED)
    async with expert_over(tmp_path) as expert:
        plain = await expert.search(call_for("deploy freeze", project))
        every = await expert.search(call_for("deploy freeze", project, include_expired=True, include_pending=True))
    assert paths(plain) == ["c.md"]
    assert set(plain.hidden) == {("work", "a.md"), ("work", "b.md")}
    assert any("hidden" in note for note in plain.notes)
    statuses = {h.path: h.about.status for h in every.hits if h.about}
    assert statuses == {"a.md": "expired", "b.md": "pending", "c.md": "current"}
    assert every.hidden == ()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"folder": "ops"}, {"ops/a.md"}),
        ({"tags": ["Deploy"]}, {"ops/a.md", "dev/b.md"}),
        ({"tags": ["deploy", "web"]}, {"dev/b.md"}),
        ({"type": "runbook"}, {"ops/a.md"}),
        ({"entities": ["billing"]}, {"ops/a.md"}),
        ({"entities": ["Invoice::send()"]}, {"ops/a.md"}),
        ({"entities": ["send"]}, {"ops/a.md", "dev/b.md"}),
        ({"entities": ["send", "Page"]}, {"dev/b.md"}),
        ({"entities": ["the"]}, set()),
        ({"date_from": "2025-01-01"}, {"dev/b.md"}),
        ({"date_to": "2024-12-31"}, {"ops/a.md"}),
    ],
)
async def test_filters_let_in_what_they_name(tmp_path: Path, filters: dict[str, Any], expected: set[str]) -> None:
    files = {
        "ops/a.md": "---\ntags: [deploy]\ntype: runbook\ndate: 2024-03-01\nentities: [Billing, Ledger]\n---\n# Deploy the API\n\nDeploy it"
        " with `Invoice.send()`.\n",
        "dev/b.md": "---\ntags: deploy, web\ndate: 2025-03-01\ncomponent: page\n---\n# Deploy the page\n\nDeploy it, `send`.\n".replace(
            "deploy, web", "[deploy, web]"
        ),
        "dev/c.md": "# Deploy nothing\n\nDeploy it.\n",
    }
    project = write(tmp_path / "work", files)
    async with expert_over(tmp_path) as expert:
        assert set(paths(await expert.search(call_for("deploy", project, **filters)))) == expected


async def test_a_temporal_weight_of_zero_is_exactly_neutral(tmp_path: Path) -> None:
    dated = {f"{n}.md": f"---\ndate: {2000 + n}-01-01\n---\n# Note {n}\n\n{'deploy ' * (n % 7 + 1)}the service {n}.\n" for n in range(25)}
    undated = {name: text.split("---\n", 2)[2] for name, text in dated.items()}
    scores: list[list[tuple[str | None, float | None]]] = []
    for name, files in (("one", dated), ("two", undated)):
        project = write(tmp_path / name, files)
        async with expert_over(tmp_path / f"{name}-state", default_config(temporal=0.0)) as expert:
            scores.append([(h.path, h.native_score) for h in (await expert.search(call_for("deploy the service", project))).hits])
    assert scores[0] == scores[1]


async def test_with_a_temporal_weight_the_newer_of_two_equals_stands_first(tmp_path: Path) -> None:
    files = {f"{n}.md": f"---\ndate: {y}-01-01\n---\n# Note\n\nDeploy the service.\n" for n, y in (("a", 2019), ("b", 2026))}
    project = write(tmp_path / "work", files)
    async with expert_over(tmp_path, default_config(temporal=0.2)) as expert:
        assert paths(await expert.search(call_for("deploy the service", project))) == ["b.md", "a.md"]


def test_a_section_stands_for_its_document_whoever_found_that_as_a_whole() -> None:
    document = derive_document("a.md", "markdown", "# Title\n\nText.\n\n## Part\n\nMore.\n")
    part = Part("work", Segment([]), Segment([]).body, (document,), {}, np.zeros(1, np.bool_))

    def retrieved(name: str, chunk: int | None) -> Retrieved:
        return Retrieved(((Place(0, 0, chunk), 1.0),), StageFacts(stage=name, active=True, reason="ran", in_=1, out=1, ms=0))

    weights = default_config().weights
    for order in (("document", "lexical"), ("lexical", "document")):
        (found,) = fuse_documents([part], [retrieved(name, 1 if name == "lexical" else None) for name in order], weights)
        assert found.chunk == 1
        assert {str(rank) for rank in found.ranks} == {"document #1 of 1: 1", "lexical #1 of 1: 1"}


# ------------------------------------------------------------------ through the front door


async def test_the_traps_hold_whatever_other_experts_find(tmp_path: Path) -> None:
    freezes = {
        f"dates/{name}.md": f"---\n{line}\n---\n# Freeze window\n\nDeploy freeze of the shop.\n"
        for name, line in (("a", "valid_until: 2020-01-31"), ("b", "valid_from: 2999-01-01"), ("c", "valid_until: 2999-01-01"))
    }
    write(tmp_path / "work", {**TWINS, **FLOOD, **freezes})
    async with open_router(roots=[tmp_path / "work"], environ=environ(tmp_path)) as router:
        twin = await router.search({"question": "which message queue do we use", "limit": 20})
        found = [e.path for e in twin.evidence]
        assert found.index("adr/0007-queue.md") < found.index("adr/0003-queue.md")
        flood = await router.search({"question": "what is the payments retry limit", "limit": 20})
        assert flood.evidence[0].path == "services/payments.md"
        freeze = await router.search({"question": "when is the deploy freeze window", "intent": "docs"})
        assert [e.path for e in freeze.evidence if e.path and e.path.startswith("dates/")] == ["dates/c.md"]


async def test_a_document_comes_with_title_section_status_and_signals(tmp_path: Path) -> None:
    write(tmp_path / "work", FLOOD)
    async with open_router(roots=[tmp_path / "work"], environ=environ(tmp_path)) as router:
        answer = await router.search({"question": "documentation of the payments retry limit", "intent": "docs"})
        item = answer.evidence[0]
        assert (item.kind, item.title, item.heading, item.status) == ("document", "Payments service", "Retries", "current")
        assert "«retry»" in item.snippet
        assert any(s.startswith("lexical #") for s in item.signals)
        stages = {s.stage: (s.active, s.reason) for s in answer.stages}
        assert stages["knowledge.semantic"][0] is False
        assert stages["knowledge.semantic"][1]
        assert stages["knowledge.lexical"][0] is True
        assert "Payments service › Retries" in router.render(answer)


CLOSING = {
    "api.md": "# API\n\n## Overview\n\nConnections are opened, and connections are used; closing connections, too, is what connections are "
    "for.\n\n## Closing connections\n\nSend the final event. The state machine then moves on, and the peer is told that nothing more will "
    "come from here, whatever it still sends in the meantime. A server may wait for what is under way, and must not wait for ever.\n",
    "other.md": "# Other\n\n## Timers\n\nEverything ends at some time.\n\n## Names\n\nNames are short.\n",
}


async def test_a_heading_that_says_what_is_asked_stands_before_text_that_repeats_it(tmp_path: Path) -> None:
    project = write(tmp_path / "work", CLOSING)
    async with expert_over(tmp_path) as expert:
        found = (await expert.search(call_for("closing connections", project))).hits[0]
    assert found.about is not None and (found.path, found.about.heading) == ("api.md", "Closing connections")
