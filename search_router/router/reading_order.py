"""The stage `reading-order`: the best files in the order in which a language model would read them, where the request allows it.

The model sees excerpts as quoted data and may only name the files it was given: anything else is dropped and said. So the most that a
hostile file can reach is another order of what was found anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from search_router.adapters.language_model import LanguageModel, Reply
from search_router.config.schema import LanguageModelConfig
from search_router.errors import ExpertError
from search_router.redact import scrub
from search_router.router.evidence import readable_path
from search_router.router.excerpts import excerpt_of
from search_router.router.fuse import Fused
from search_router.router.identity import FileKey
from search_router.router.stages import StageLog
from search_router.schema import FileFacts

STAGE: Final = "reading-order"
TASK: Final = (
    "You are given a question about a code base and the files that a search found for it, each with a name and an excerpt. Put the names "
    "in the order in which somebody who wants the answer should read the files, the most useful first. Use the given names exactly as they "
    "are and no others; leave out files that do not help."
)


class OrderReply(Reply):
    """Names of files, the first to be read first."""

    order: Annotated[list[str], Field(max_length=1000)]


class Heard(NamedTuple):
    """What counts of a model's order: given names, each once; and what was left out of it."""

    names: tuple[str, ...]
    foreign: int
    repeated: int


async def order_reading(
    model: LanguageModel | None,
    settings: LanguageModelConfig,
    question: str,
    fused: list[Fused],
    facts: Mapping[FileKey, FileFacts],
    seconds: float,
    stages: StageLog,
) -> tuple[list[Fused], str | None]:
    """(the list with its best files in the model's order; a note when it failed, or when something it said was dropped).

    Nothing is lost or added. Files that it does not name follow those that it does; a file's second place stays a second place.
    """
    files = first_places(fused, settings.files)
    reason = _why_not(model, settings, len(files))
    if model is None or reason:
        stages.skip(STAGE, reason, len(files))
        return fused, None
    seconds = min(settings.cap_ms / 1000, seconds)
    with stages.run(STAGE, len(files)) as stage:
        stage.out = len(files)
        if seconds <= 0:
            stage.active, stage.reason = False, "the order stands: no time is left in the budget"
            return fused, f"not put in reading order, {stage.reason}"
        told = [{"name": name, "text": excerpt_of(each, facts, settings.characters)} for name, each in files.items()]
        try:
            reply = await model.ask(TASK, {"question": question, "files": told}, OrderReply, seconds)
        except ExpertError as error:
            said = scrub(str(error))
            stage.active, stage.reason = False, f"the order stands, {model.name} failed ({error.failure.value}): {said}"
            return fused, f"not put in reading order, the order stands: {said}"
        heard = hear(reply.order, tuple(files))
        dropped = _dropped(heard)
        stage.reason = f"{model.name} (texts were sent there): {len(heard.names)} of {len(files)} files named{dropped}"
    note = f"{model.name} named what it was not given{dropped}" if dropped else None
    return move_files(fused, heard.names, tuple(files)), note


def first_places(fused: Sequence[Fused], count: int) -> dict[str, Fused]:
    """The first item of each of the best `count` files, by the file's name for the model; what is in no file is none."""
    found: dict[str, Fused] = {}
    for each in fused:
        name = name_of_file(each)
        if name is not None and name not in found:
            if len(found) == count:
                break
            found[name] = each
    return found


def name_of_file(fused: Fused) -> str | None:
    candidate = fused.candidate
    return None if candidate.path is None else f"{candidate.project}/{readable_path(candidate.path)}"


def hear(order: Sequence[str], given: Sequence[str]) -> Heard:
    """What counts of an order. Pure."""
    known = frozenset(given)
    names = tuple(dict.fromkeys(name for name in order if name in known))
    foreign = sum(name not in known for name in order)
    return Heard(names, foreign, len(order) - foreign - len(names))


def move_files(fused: Sequence[Fused], named: Sequence[str], given: Sequence[str]) -> list[Fused]:
    """The list with the given files in the order of `named`, then the others as they were. Pure.

    First places change seats with first places, second with second, and so on; what belongs to no given file keeps its seat.
    """
    rank = {name: at for at, name in enumerate(dict.fromkeys([*named, *given]))}
    seats: dict[int, list[int]] = defaultdict(list)
    depth: dict[str, int] = defaultdict(int)
    for at, each in enumerate(fused):
        name = name_of_file(each)
        if name in rank:
            seats[depth[name]].append(at)
            depth[name] += 1
    moved = list(fused)
    for taken in seats.values():
        for seat, origin in zip(taken, sorted(taken, key=lambda at: rank[name_of_file(fused[at]) or ""]), strict=True):
            moved[seat] = fused[origin]
    return moved


def _why_not(model: LanguageModel | None, settings: LanguageModelConfig, count: int) -> str:
    if model is None:
        return "no language model is configured"
    if not settings.reading_order:
        return "llm.reading_order is off"
    return "nothing to reorder" if count < 2 else ""


def _dropped(heard: Heard) -> str:
    parts = [
        *([f"{heard.foreign} names of no given file dropped"] if heard.foreign else []),
        *([f"{heard.repeated} repeated names dropped"] if heard.repeated else []),
    ]
    return f"; {', '.join(parts)}" if parts else ""
