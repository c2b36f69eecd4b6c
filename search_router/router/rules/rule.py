"""The table of classification rules: how people and agents word each kind of question.

A rule is a pattern over one surface of the question (see `wording.Surfaces`), with what must also hold and what must not. `asks` marks
wording that says what is wanted; the other rules only recognise what is named, and count half once something has been asked.
Patterns start with a space, because a surface does: one literal character makes the search about five times faster than `\\b`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from search_router.router.rules.gated import GatedPattern
from search_router.schema import Intent

Surface = Literal["wording", "naming", "text"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: fires when `pattern` is found, `also` too, and `unless` is not. `weight` is per mille."""

    id: str
    intent: Intent
    weight: int
    pattern: GatedPattern
    surface: Surface = "wording"
    asks: bool = False
    also: GatedPattern | None = None
    unless: GatedPattern | None = None


# Words that patterns share. Verb classes (change_p, …) are explained in wording.py.
PAST = r"(?:change_p|make_p)"
BASE = r"(?:change_b|make_b)"
GERUND = r"(?:change_g|make_g)"
ANY_FORM = r"(?:change_[bpg]|make_[bpg])"
NAME = r"(?:_id_|_const_)"
THING = r"(?:_id_|_api_|_const_|_path_|_q_|_lit_)"
AUXILIARY = r"(?:do|does|did|is|are|was|were|has|have|had|should|can|could|would|must|shall|may|we|i|you|they|the|how|why|where)"
STILL = (
    r"(?:(?:else|still|also|currently|actually|directly|all|already|really|might|may|could|would|"
    r"will|indirectly|transitively|today|now) )*"
)
PLACES = (
    r"(?:places?|files?|modules?|functions?|methods?|classes|services?|repos?|repositor(?:y|ies)|"
    r"packages?|tests?|components?|projects?|"
    r"spots|locations|clients?|apps?|applications?|endpoints?|jobs?|things?|pages?|scripts?|crates?|teams?|handlers?|lines|call ?sites)"
)
KINDS = (
    r"(?:class|struct|interface|enum|trait|protocol|type|method|function|func|fn|constructor|component|macro|mixin|typedef|dataclass|"
    r"decorator|hook|alias|exception|record|property|abstract|async|symbol|def|fun|impl|var|const|"
    r"static|public|module|definition|declaration|source)"
)
MEMBERS = (
    r"(?:methods?|fields?|members?|attributes?|properties|property|props|constructors?|parameters?|params|arguments?|args|types?|"
    r"signatures?|getters?|setters?|variants?|overloads?|exceptions?|bounds|annotations?|defaults?|"
    r"default values?|values?|keyword arguments)"
)
RECORDS = r"(?:commits?|prs?|pull requests?|mrs?|merge requests?|patch(?:es)?|changesets?|revisions?)"
OURS = (
    r" (?:our|ours|we|us|in here|here|this (?:repo|repository|codebase|code|project|app|application|service|module|package)|"
    r"(?:the|our) (?:codebase|code base|repo|repository)) | where (?:is|are|do|does|in|the) "
)


def rule(
    id_: str,
    weight: int,
    pattern: str,
    surface: Surface = "wording",
    *,
    also: str = "",
    unless: str = "",
    asks: bool = True,
) -> Rule:
    prefix, _, _ = id_.partition(".")
    return Rule(
        id=id_,
        intent=Intent(prefix),
        weight=weight,
        pattern=GatedPattern(pattern),
        surface=surface,
        asks=asks,
        also=GatedPattern(also) if also else None,
        unless=GatedPattern(unless) if unless else None,
    )


def named(id_: str, weight: int, pattern: str, surface: Surface = "wording", *, also: str = "", unless: str = "") -> Rule:
    return rule(id_, weight, pattern, surface, also=also, unless=unless, asks=False)
