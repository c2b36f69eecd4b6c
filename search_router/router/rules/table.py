"""The whole table, in the order in which fired rules are reported."""

from __future__ import annotations

from search_router.router.rules.history import HISTORY
from search_router.router.rules.impact import IMPACT
from search_router.router.rules.named import IDENTIFIER, TYPED
from search_router.router.rules.prose import CONCEPTUAL, DOCS
from search_router.router.rules.rule import Rule

RULES: tuple[Rule, ...] = (*HISTORY, *IMPACT, *TYPED, *CONCEPTUAL, *IDENTIFIER, *DOCS)
