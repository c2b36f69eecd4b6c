"""Which names a question asks a typed expert about. Only names: an engine that resolves has nothing to say about words."""

from __future__ import annotations

import re
from typing import Final

from search_router.adapters.local.symbol_lookup import UNVERIFIED, WantedName, qualified_level, read_names
from search_router.schema import ExpertCall, QueryForm

_ASKING: Final = frozenset(
    """call calls called caller callers invoke invokes invoked use uses used user users usage usages reference references referenced import
    imports imported depend depends break breaks change changes affected function method class implement implements""".split()
)
_CALLS: Final = re.compile(r"\b(?:call(?:s|ed|er|ers|ing)?|invok(?:e|es|ed|ing|er|ers))\b", re.IGNORECASE)


def asks_for_calls(call: ExpertCall) -> bool:
    """Whether the question is about calls in so many words: then an import is no answer."""
    return _CALLS.search(call.sub_query.text) is not None


def asked_names(call: ExpertCall) -> list[WantedName]:
    """The names in a sub-query, in order. Where it consists of words, those that are
    written like identifiers, else the only one that is no word of asking."""
    query = call.sub_query
    match query.form:
        case QueryForm.SYMBOL:
            return read_names(query.terms or (query.text,))
        case QueryForm.LITERAL:
            return read_names(query.terms or (query.text,), literal=True)
        case QueryForm.KEYWORDS | QueryForm.TEXT:
            names = [n for n in read_names(query.terms or (query.text,), literal=True) if n.name.lower() not in _ASKING]
            written = [n for n in names if n.qualifiers or "_" in n.name or not (n.name.islower() or n.name.istitle())]
            return written or (names if len(names) == 1 else [])
        case QueryForm.REGEX:
            return []


def fits(wanted: WantedName, containers: tuple[str, ...], parts: tuple[str, ...] = ()) -> bool:
    """Whether a definition with these containers, in a file of these path parts, has the qualifiers in front of the name."""
    return qualified_level(wanted.qualifiers, containers, parts) < UNVERIFIED
