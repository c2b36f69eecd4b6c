"""What a project's own file may set. It comes with the repository, so whoever can push to it would otherwise own this machine."""

from __future__ import annotations

from collections.abc import Iterator

from search_router.config.keys import Table, as_table
from search_router.config.layers import Layer
from search_router.config.schema import Config
from search_router.config.shape import EXPERT_KEYS

SECTIONS = frozenset({"budget", "classify", "gate", "fusion", "output", "priors"})
WORKSPACE_KEYS = frozenset({"names", "groups", "submodules"})
EXPERT_KEYS_ALLOWED = frozenset({"enabled", "cap_ms", "intents", "languages"})


def keep_trusted(layer: Layer, experts: frozenset[str], user_file: str) -> Layer:
    """The project's layer without what it may not set, each of it with its problem.

    `experts` are those that a more trusted layer defines. Keys that the schema does not have stay in, so that they are reported as
    unknown and not as forbidden.
    """
    message = f"may not be set by a project file (it comes with the repository); set it in {user_file}, the environment or a flag"
    return layer.refuse((path, message) for path in _forbidden(layer.values, experts))


def _forbidden(values: Table, experts: frozenset[str]) -> Iterator[tuple[str, ...]]:
    for section, value in values.items():
        table = as_table(value)
        if section in SECTIONS or section not in Config.model_fields:
            continue
        if section == "experts" and table is not None:
            for name, block in table.items():
                yield from _forbidden_in_expert(name, as_table(block), experts)
        elif section == "workspace" and table is not None:
            yield from ((section, key) for key in table if key not in WORKSPACE_KEYS)
        elif table:
            yield from ((section, key) for key in table)
        else:
            yield (section,)


def _forbidden_in_expert(name: str, block: Table | None, experts: frozenset[str]) -> Iterator[tuple[str, ...]]:
    if block is None or name not in experts:
        yield ("experts", name)
        return
    yield from (("experts", name, key) for key in block if key in EXPERT_KEYS and key not in EXPERT_KEYS_ALLOWED)
