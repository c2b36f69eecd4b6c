"""What a document names: entities and components of its front matter, and names of code in code marks (`PaymentService.retry()`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from search_router.adapters.local.knowledge_front import Front

MAX_ENTITIES: Final = 500
"""So many different names of one document are kept, in the order in which it says them."""
SAID: Final = ("entities", "entity", "component", "components", "symbols")
_MARKED = re.compile(r"`{1,2}([^`\n]{1,120})`{1,2}|(?<![\w=])[=~]([^=~\s][^=~\n]{0,118})[=~](?![\w=])")
_NAME = re.compile(r"@?[^\W\d][\w$-]*(?:(?:\.|::|#|->|/)[^\W\d][\w$-]*)*(?:\(\))?!?")
_SEPARATOR = re.compile(r"::|#|->|/")


def find_entities(front: Front, texts: Iterable[str]) -> tuple[str, ...]:
    """The keys of everything that a document names, front matter first."""
    found: dict[str, None] = {}
    for key in _keys(front, texts):
        if len(found) >= MAX_ENTITIES:
            break
        found.setdefault(key)
    return tuple(found)


def _keys(front: Front, texts: Iterable[str]) -> Iterator[str]:
    yield from (key for name in SAID for value in front.get(name, ()) for part in value.split(",") if (key := entity_key(part)))
    for text in texts:
        for marked in _MARKED.finditer(text):
            name = (marked[1] or marked[2]).strip()
            if _NAME.fullmatch(name):
                yield entity_key(name)


def entity_key(name: str) -> str:
    """A name as it is compared: without case, call brackets and the language's own separators."""
    return _SEPARATOR.sub(".", name.strip().removesuffix("()").strip("@!`'\"")).lower()


def names_entity(entities: Iterable[str], wanted: str) -> bool:
    """Whether one of the names is this, or ends in it after a dot: `retry` is named by `paymentservice.retry`."""
    return any(name == wanted or name.endswith(f".{wanted}") for name in entities)
