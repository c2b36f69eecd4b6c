"""Verbs of asking about code, in all their forms, as four classes; and the surfaces that rules read.

A rule says `change_p` once and means removed, deleted, renamed, rewrote, … The class of a form is regular English inflection, with the
irregular verbs spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from search_router.router.lexicon import COMMON_WORD_LIBRARIES
from search_router.router.tokens import QuestionTokens

_VERBS = {
    # an existing thing is altered or goes away
    "change": """change modify edit update alter adjust tweak remove delete drop rename move relocate replace swap deprecate bump upgrade
        downgrade migrate switch convert port refactor rework restructure reorganise reorganize redesign simplify rewrite revert undo retire
        sunset kill disable merge split extract inline pin unpin raise=raised lower reduce increase touch abandon evolve transition revise
        patch phase=phased strip""",
    # a new thing appears
    "make": """add introduce land create implement author write ship commit fix break=broke,broken start adopt reintroduce restore enable
        contribute push release build=built invent propose choose=chose,chosen pick decide conceive""",
    # something points at a thing: the edges of a dependency graph
    "use": """use call consume import reference invoke depend rely instantiate subscribe include require utilise utilize reuse
        exercise listen construct embed wrap cover""",
    # the softer edges
    "reach": """access hit query read trigger render spawn schedule feed load mutate touch test mock assign""",
}
_IRREGULAR = {
    "write": ("wrote", "written", "writing"),
    "rewrite": ("rewrote", "rewritten", "rewriting"),
    "undo": ("undid", "undone", "undoing"),
    "split": ("split", "splitting"),
    "swap": ("swapped", "swapping"),
    "drop": ("dropped", "dropping"),
    "ship": ("shipped", "shipping"),
    "strip": ("stripped", "stripping"),
    "commit": ("committed", "committing"),
    "pin": ("pinned", "pinning"),
    "unpin": ("unpinned", "unpinning"),
    "wrap": ("wrapped", "wrapping"),
    "refactor": ("refactored", "refactoring"),
    "hit": ("hitting",),
    "read": ("reading",),
    "spawn": ("spawned", "spawning"),
    "feed": ("fed", "feeding"),
    "raise": ("raised",),
    "phase": ("phased", "phasing"),
    "break": ("broke", "broken"),
    "build": (),
    "choose": ("chose", "chosen", "choosing"),
}
# Nouns, or verbs of what programs do, more often than verbs of editing code: these forms keep their own spelling.
_PLAIN_FORMS = """
    commit commits committing release releases raise raises raising break breaks breaking build builds building patch patches start starts
    starting push pushes pushing decide decides deciding decided write writes writing create creates creating port ports test tests pick
    picks picking author authors authoring implement implements implementing choose chooses
    choosing enable enables enabling merge merges merging
    pushed releasing lower
    """
_PLAIN = frozenset(_PLAIN_FORMS.split())


def _forms(verb: str) -> Iterator[tuple[str, str]]:
    """(form, suffix) of a verb: `_b` base and third person, `_p` past and participle, `_g` gerund."""
    yield verb, "_b"
    yield (verb[:-1] + "ies" if verb[-1] == "y" and verb[-2] not in "aeo" else verb + ("es" if verb[-1] in "sxh" else "s")), "_b"
    if verb in _IRREGULAR:
        for form in _IRREGULAR[verb]:
            yield form, "_g" if form.endswith("ing") else "_p"
        return
    stem = verb[:-1] if verb.endswith("e") else verb
    yield (verb[:-1] + "ied" if verb[-1] == "y" and verb[-2] not in "aeo" else stem + "ed"), "_p"
    yield stem + "ing", "_g"


def _verb_classes() -> dict[str, str]:
    classes: dict[str, str] = {}
    for name, verbs in _VERBS.items():
        for entry in verbs.split():
            verb = entry.partition("=")[0]
            for form, suffix in _forms(verb):
                if form not in _PLAIN:
                    classes.setdefault(form, name + suffix)
    return classes


_CLASSES = _verb_classes()
_LIBRARY_SPELLINGS = re.compile(r"(?:\.js|js|\.py|\.rs|\.net)\Z")


@dataclass(frozen=True, slots=True)
class Surfaces:
    """The question as the rules read it; each starts and ends with a space, so that a pattern starts with one.

    `wording` is the skeleton with verbs as their classes and a known library's dotted names as `_api_`; `naming` is
    the skeleton with known libraries as `_lib_`, or `_common_` where the name is an everyday word; `text` is the question as it was asked.
    """

    wording: str
    naming: str
    text: str


def read_surfaces(tokens: QuestionTokens, libraries: frozenset[str]) -> Surfaces:
    """The surfaces of an analysed question; `libraries` are lower-case names."""
    words = tokens.skeleton.split(" ")
    wording = " ".join([_CLASSES.get(word, word) for word in words])
    naming = tokens.skeleton
    if libraries:
        naming = " ".join(_mask_libraries(words, libraries))
        if not libraries.isdisjoint(tokens.heads):
            naming = naming.replace("_id_", "_lib_", 1)
            if libraries.issuperset(tokens.heads):
                wording = wording.replace("_id_", "_api_")
        elif any(_bare_library(path) in libraries for path in tokens.paths if "/" not in path):
            naming = naming.replace("_path_", "_lib_", 1)
    return Surfaces(f" {wording} ", f" {naming} ", f" {tokens.text} ")


def _bare_library(word: str) -> str:
    return _LIBRARY_SPELLINGS.sub("", word.lower())


def _mask_libraries(words: list[str], libraries: frozenset[str]) -> list[str]:
    """Two words may spell one name: `spring boot` is `spring-boot`."""
    masked: list[str] = []
    for i, word in enumerate(words):
        following = words[i + 1] if i + 1 < len(words) else ""
        joined = f"{word}-{following}" in libraries and word not in ("the", "a", "our")
        masked.append("_lib_" if joined else _library_mask(word, libraries))
    return masked


def _library_mask(word: str, libraries: frozenset[str]) -> str:
    if word in libraries or _bare_library(word) in libraries:
        return "_common_" if word in COMMON_WORD_LIBRARIES else "_lib_"
    return word
