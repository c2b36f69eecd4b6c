"""Who may use the console: everybody on a loopback server without a token, else who gave the token once at the login form.

The cookie is an expiry, a random number and their HMAC-SHA-256 under a secret of this process: it names nobody, and a restart ends it.
Forms carry a second HMAC, of the cookie that they were made for, against forms of other sites.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers

COOKIE: Final = "search_router_console"
SECONDS: Final = 12 * 3600
NOBODY: Final = "none"
"""What forms are bound to where no login is needed."""


class Sessions:
    """Makes and checks cookies and form tokens. `token` is None where no login is needed."""

    def __init__(self, token: str | None, clock: Callable[[], float] = time.time) -> None:
        self._digest = hashlib.sha256(token.strip().encode()).digest() if token else None
        self._secret = secrets.token_bytes(32)
        self._clock = clock
        self._ended: dict[str, int] = {}

    @property
    def login_needed(self) -> bool:
        """Whether the server has a token."""
        return self._digest is not None

    def is_token(self, given: str) -> bool:
        """Whether this is the server's token, compared in constant time."""
        return self._digest is not None and hmac.compare_digest(
            hashlib.sha256(given.strip().encode("utf-8", "replace")).digest(), self._digest
        )

    def open(self) -> str:
        """The value of a new cookie, good for SECONDS."""
        named = f"{int(self._clock()) + SECONDS}.{secrets.token_hex(8)}"
        return f"{named}.{self._mac('session', named)}"

    def is_open(self, headers: Headers) -> bool:
        """Whether a request carries a cookie of ours that has neither expired nor been ended."""
        cookie = self.cookie_of(headers)
        return self._expiry(cookie) > self._clock() and cookie not in self._ended

    def end(self, headers: Headers) -> None:
        """Let a request's cookie open nothing any more."""
        cookie, now = self.cookie_of(headers), self._clock()
        self._ended = {ended: expiry for ended, expiry in self._ended.items() if expiry > now}
        if (expiry := self._expiry(cookie)) > now:
            self._ended[cookie] = expiry

    def form_token(self, headers: Headers) -> str:
        """What forms of this request's cookie must send back."""
        return self._mac("form", self.cookie_of(headers) if self.login_needed else NOBODY)

    def is_form_token(self, headers: Headers, given: str) -> bool:
        """Whether a form was made by us for this cookie."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.form_token(headers).encode())

    def cookie_of(self, headers: Headers) -> str:
        """The cookie's value, empty when there is none."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _expiry(self, cookie: str) -> int:
        """When a cookie of ours expires; 0 for any other."""
        named, _, mac = cookie.rpartition(".")
        expiry = named.partition(".")[0]
        ours = hmac.compare_digest(mac.encode("utf-8", "replace"), self._mac("session", named).encode())
        return int(expiry) if ours else 0

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()
