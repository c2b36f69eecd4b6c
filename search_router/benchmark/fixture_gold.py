"""Which experts should be asked, for each class of question: decided from the design, before looking at what the router does.

The documented gate asks every expert that serves the class and has a prior for it (docs/configuration.md, `[priors]`); so the gold set of
a class is that set, and what selection measures is whether a question is recognised as what it is and whether its experts were there.
Three refinements come from the design and not from the table: an expert in reserve is not gold (decision 0021); jedi reads Python, so it
is gold for questions about Python alone; one exact name in one known file is for one expert alone. `scip` is gold nowhere: nothing here
has an index of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GOLD: Final[Mapping[str, tuple[str, ...]]] = {
    "conceptual": ("codesearch", "knowledge", "symbols"),
    "identifier": ("grep", "symbols"),
    "typed-symbol": ("codesearch", "grep", "symbols"),
    "cross-repo-impact": ("callgraph", "grep", "python-types", "symbols"),
    "docs": ("codesearch", "docs", "grep", "knowledge", "symbols"),
    "history": ("grep", "history", "knowledge"),
}
SOLE: Final = {"typed-symbol": "codesearch", "identifier": "grep"}
"""The best of the class by prior, alone."""
PYTHON_ONLY: Final = frozenset({"python-types"})


def gold_experts(kind: str, *, python: bool = True, sole: bool = False) -> tuple[str, ...]:
    """The set for a question of a class; nothing for an adversarial one."""
    if sole:
        return (SOLE[kind],)
    return tuple(name for name in GOLD.get(kind, ()) if python or name not in PYTHON_ONLY)
