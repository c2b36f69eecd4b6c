"""Takes out of free text what looks like a secret, before the text reaches a log, an error or a receipt.

It works on shapes, so it is a second line of defence: the first is not to put secrets into texts. Every pattern is linear in the
length of the text. The bottom layer: every room may import it and it imports nothing.
"""

from __future__ import annotations

import re

REMOVED = "[removed]"
MAX_SCRUBBED = 65_536
"""Characters that are looked at; what lies beyond is dropped, because it was not looked at."""

_NAME = (
    r"(?:password|passphrase|passwd|pwd|secret|credentials?"
    r"|(?:api|access|auth|private|secret|signing|session|client)[_-]?(?:key|token|secret))"
)
_SHAPES = (
    r"sk-[A-Za-z0-9_-]{8,}",
    r"gh[pousr]_[A-Za-z0-9]{8,}",
    r"github_pat_[A-Za-z0-9_]{8,}",
    r"glpat-[A-Za-z0-9_-]{8,}",
    r"xox[a-z]-[A-Za-z0-9-]{8,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{8,}",
    r"AIza[A-Za-z0-9_-]{20,}",
    r"(?:hf|npm)_[A-Za-z0-9]{16,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL), REMOVED),
    (re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/?#]{1,512}@"), rf"\1{REMOVED}@"),
    (
        re.compile(
            r"(?i)\b((?:proxy-)?authorization|x-api-key|api-key|cookie|set-cookie)(['\"]?\s{0,8}[:=]\s{0,8}['\"]?)"
            r"(?:(?:basic|bearer|token|digest|negotiate)\s{1,8})?[^\s'\",]+"
        ),
        rf"\1\2{REMOVED}",
    ),
    (re.compile(r"(?i)\b(bearer)\s{1,8}[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REMOVED}"),
    (re.compile(r"\b(Basic|basic)\s{1,8}(?=[A-Za-z+/]{0,64}[0-9=])[A-Za-z0-9+/=]{8,}"), rf"\1 {REMOVED}"),
    (re.compile(rf"(?i)({_NAME})(['\"]?\s{{0,8}}[:=]\s{{0,8}})(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s'\"&,;]+)"), rf"\1\2{REMOVED}"),
    (re.compile(rf"(?i)(--{_NAME}|--token|--key)(\s{{1,8}})[^\s-]\S*"), rf"\1\2{REMOVED}"),
    (
        re.compile(
            r"(?i)(?<![A-Za-z])(keys?|tokens?|sig|signature)(['\"]?\s{0,8}[:=]\s{0,8}['\"]?)(?=[A-Za-z+/_.-]{0,256}[0-9])[\w+/=.-]{12,}"
        ),
        rf"\1\2{REMOVED}",
    ),
    (re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})"), REMOVED),
)
# Every rule needs one of these words, and most texts have none of them: the one look that spares them all the others.
_HINTS = re.compile(
    r"(?i)PRIVATE KEY|://|authorization|cookie|bearer|basic|pass|pwd|secret|credential|key|token|sig|sk-|gh[pousr]_|_pat_|glpat|xox|A[KS]IA"
    r"|AIza|hf_|npm_|pypi-|eyJ"
)


def scrub(text: str, limit: int | None = None) -> str:
    """`text` with everything that looks like a secret replaced by `[removed]`, then cut to `limit` characters with an ellipsis.

    Looked for: private key blocks, user and password in URLs, Authorization and Cookie values, bearer tokens, the well-known token
    prefixes (sk-, ghp_, AKIA, …), and values after names such as password, token or api_key.
    """
    found = text[:MAX_SCRUBBED]
    if _HINTS.search(found):
        for pattern, replacement in _RULES:
            found = pattern.sub(replacement, found)
    if limit is not None and len(found) > limit:
        return found[: limit - 1] + "…"
    return found
