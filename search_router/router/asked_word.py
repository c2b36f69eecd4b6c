"""One plain word in capitals whose definition is asked for is a name, though nothing in its spelling says so: `definition of Session`.

Only wordings that ask for a definition count, and only when the name ends the question but for `class` or `defined`: in running text a
capital is a product, a person or the beginning of a sentence. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from search_router.router.lexicon import AMBIGUOUS_LANGUAGES, LANGUAGES

LONGEST: Final = 120
"""A longer question says more than a name."""
_KIND: Final = r"(?:class|type|struct|enum|interface|trait|constant|function|method)"
_NAME: Final = rf"(?:the\s+)?(?:{_KIND}\s+)?(?P<name>[A-Z][A-Za-z]{{2,}})(?:\s+{_KIND})?"
_WORDINGS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:\A|\s)(?i:definition|declaration|signature)\s+of\s+{_NAME}[?.\s]*\Z",
        rf"(?:\A|\s)(?i:implementation)\s+of\s+(?![A-Z]+\b){_NAME}[?.\s]*\Z",
        rf"\A(?i:where\s+is|where's|where\s+are)\s+{_NAME}\s+(?:defined|declared|implemented)[?.\s]*\Z",
        rf"\A(?i:find|locate|go\s?to|jump\s+to|look\s+up)\s+{_NAME}[?.\s]*\Z",
    )
)
"""`implementation of HTTP` asks how a protocol is spoken; `definition of SERVER` asks for a constant."""


def word_asked_for(text: str) -> str | None:
    """The word of a question in normal form that is a name by how it is asked for; a programming language never is."""
    for wording in _WORDINGS if len(text) <= LONGEST else ():
        found = wording.search(text)
        if found is not None and not {found["name"].lower()} & (LANGUAGES.keys() | AMBIGUOUS_LANGUAGES.keys()):
            return found["name"]
    return None
