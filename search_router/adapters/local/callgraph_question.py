"""What a question about edges asks for: who calls, who uses, who imports, what it calls, what breaks; and of which names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from search_router.adapters.local.symbol_lookup import WantedName, read_names
from search_router.schema import QueryForm, SubQuery


class Wanted(StrEnum):
    """Which edges are asked for."""

    CALLERS = "callers"
    USES = "uses"
    IMPORTERS = "importers"
    CALLEES = "callees"
    IMPACT = "impact"


@dataclass(frozen=True, slots=True)
class EdgeQuestion:
    """The direction and the names, most important first. `plain` says that they are written like ordinary words; `modules` are all of
    them as they are written, for packages and paths."""

    wanted: Wanted
    names: tuple[WantedName, ...]
    modules: tuple[str, ...]
    plain: bool = False


_CALL = r"(?:calls?|invokes?|runs?|triggers?|uses?|depends? on|rel(?:y|ies) on)"
_CALLEES = re.compile(
    r"\bcallees?\b|\boutgoing (?:calls?|edges?)\b|\bcalls? made (?:by|in|from)\b"
    r"|\b(?:what|which)\b(?: (?:all|else|other|functions?|methods?|things?|classes))* (?:do|does|did) "
    rf".{{1,120}}? {_CALL}(?: on)?\s*[?.!]*$"
    r"|\b(?:what|which)(?: \w+){0,2} (?:is|are|gets?) (?:called|invoked|used) (?:by|from|in|inside|within)\b"
)
_IMPACT = re.compile(
    r"\bbreaks?\b|\bbroken\b|\baffect(?:s|ed)?\b|\bimpact(?:s|ed)?\b|\bblast radius\b|\bripple|\bknock-on|\bsafe(?:ly)? to\b|\btransitive"
    r"|\bindirect|\bdownstream\b|\bfallout\b|\bconsequences?\b"
    r"|\bif (?:i|we|you|someone|one)\b.{0,40}\b(?:chang|remov|renam|delet|modif|edit|updat|replac|drop|mov|touch)"
    r"|\b(?:changing|removing|renaming|deleting|modifying|editing|replacing|dropping)\b"
)
_IMPORTERS = re.compile(
    r"\bimport(?:s|ed|ers?|ing)?\b|\bconsum(?:es?|ers?|ed|ing)\b|\bdepend(?:s|ents?|ants?|ing)?(?: on| upon)?\b|\brequires?\b|\bincludes?\b"
    r"|\b(?:packages?|librar(?:y|ies)|crates?|gems?|dependency|npm|pypi|header)\b"
)
_CALLERS = re.compile(r"\bcall(?:s|ed|ers?|ing)?\b|\bcall[- ]?sites?\b|\binvo(?:kes?|ked|king|cations?)\b|\bfan-in\b|\bincoming\b")
_QUOTED = re.compile(r"[`\"“]([^`\"”\s][^`\"”]{0,200})[`\"”]|(?<![\w])'([^'\s]{1,200})'(?!\w)")
_TOKEN = re.compile(r"[@\w$][\w$@./:#\\>-]*(?:\(\))?[?!]?")
_NOT_NAMES: Final = frozenset(
    """a about across affect affected affects after all an and another any anyone anything are as at be because before being blast break
    breaking breaks broken by call called callees caller callers calling calls can change changed changes changing class classes client
    clients code codebase consequences consume consumed consumer consumers consumes consuming could crate crates delete deleted deleting
    depend depended dependencies dependency dependent dependents depends direct directly do does downstream drop each edge edges edit else
    every everything fan-in field file files find first fn from func function functions gem get gets graph happen happens have header how
    i if impact impacted impacts implementation import imported importer importers importing imports in include included includes incoming
    indirect indirectly inside into invocations invoke invoked invokes invoking is it its libraries library list location locations me
    method methods modified modify module modules my need needs node npm of on or other our outgoing package packages part parts place
    places please project projects pypi radius reference referenced references referencing relies rely remove removed removing rename
    renamed renaming replace repo repos repositories repository require required requires run runs safe safely service services should
    show signature site sites somebody someone something still struct symbol symbols teams tell test tests that the them there these they
    thing things this those through throughout to transitive transitively trigger triggers type types up update usage usages use used user
    users uses using variable want was we were what when where which who whom whose why will with within without workspace would you
    your""".split()
)


def read_question(query: SubQuery) -> EdgeQuestion:
    """The direction by the wording of the whole question; the names from its identifiers, quotes, or the one word that is left."""
    text = " ".join(query.text.lower().split())
    if _CALLEES.search(text):
        wanted = Wanted.CALLEES
    elif _IMPACT.search(text):
        wanted = Wanted.IMPACT
    elif _CALLERS.search(text):
        wanted = Wanted.CALLERS
    else:
        wanted = Wanted.IMPORTERS if _IMPORTERS.search(text) else Wanted.USES
    if query.form is QueryForm.SYMBOL and query.terms:
        return EdgeQuestion(wanted, tuple(read_names(query.terms)), tuple(query.terms))
    quoted = [part for pair in _QUOTED.findall(query.text) for part in pair if part]
    if quoted:
        return EdgeQuestion(wanted, tuple(read_names(quoted)), tuple(quoted))
    words = _left_words(query.text)
    written = [word for word in words if not word.isalpha() or word != word.lower()]
    if written:
        return EdgeQuestion(
            wanted, tuple(read_names(written)), tuple(written), plain=all(word.isalpha() and word.istitle() for word in written)
        )
    if len(words) != 1:  # a phrase of several plain words describes something; one word alone names it
        return EdgeQuestion(wanted, (), ())
    return EdgeQuestion(wanted, tuple(read_names(words)), tuple(words), plain=True)


def _left_words(text: str) -> Sequence[str]:
    """The words that are neither function words nor the vocabulary of asking for edges."""
    words = (match[0].rstrip(".:/?!-") for match in _TOKEN.finditer(text))
    return list(dict.fromkeys(word for word in words if word and word.lower() not in _NOT_NAMES))
