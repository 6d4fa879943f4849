"""Control who may see values and perform actions: nobody, users with a token, or users whom a proxy has
authenticated.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from aiohttp import web

from translator.errors import quote

_COOKIE = "cdc_desk"

_SESSION_SECONDS = 12 * 60 * 60
_SESSIONS = 1000
"""Maximum number of sessions. When the limit is exceeded, the oldest session ends."""

_FAILURE_SECONDS = 1.0
"""Pause after a wrong token, for everyone who logs in. Otherwise, parallel requests could try any number of tokens."""

_ATTEMPTS = 8
"""Maximum number of logins that wait for this pause. Further logins are rejected."""


_pause = asyncio.sleep


def _nobody(_: str) -> None:
    pass


class Access:
    """The configured ways to log in, if any.

    Args:
        token: anyone who presents this token can see values and perform actions.
        trusted_header: a header set by a proxy that authenticates users. Without the proxy, anyone could set the
            header.
        say: called with each login and each action, without the token.
    """

    def __init__(
        self, token: str | None = None, trusted_header: str | None = None, say: Callable[[str], object] = _nobody
    ) -> None:
        self._token = token
        self._trusted_header = trusted_header
        self._say = say
        self._sessions: dict[bytes, float] = {}  # end of each session, by the digest of its cookie
        self._attempts = 0
        self._turn = asyncio.Lock()

    @property
    def has_login(self) -> bool:
        return self._token is not None

    def is_granted(self, request: web.Request) -> bool:
        """Return whether the client may see values and perform actions."""
        if self._trusted_header is not None and request.headers.get(self._trusted_header):
            return True
        return self._sessions.get(_digest(request), 0.0) > time.monotonic()

    async def log_in(self, request: web.Request, token: str, response: web.Response) -> bool:
        """Log a client in if the token is correct. Returns whether the token was correct.

        Raises:
            HTTPTooManyRequests: too many other logins are being checked.
        """
        if self._attempts >= _ATTEMPTS:
            raise web.HTTPTooManyRequests
        self._attempts += 1
        try:
            async with self._turn:
                if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
                    self._say(f"login rejected: wrong token from {request.remote}")
                    await _pause(_FAILURE_SECONDS)
                    return False
        finally:
            self._attempts -= 1
        self._open(request, response)
        self._say(f"login accepted from {request.remote}")
        return True

    def log_out(self, request: web.Request, response: web.Response) -> None:
        """End a client's session."""
        self._sessions.pop(_digest(request), None)
        response.del_cookie(_COOKIE)

    def note(self, request: web.Request, action: str) -> None:
        """Report an action, with the user's name if a proxy set it."""
        user = "" if self._trusted_header is None else request.headers.get(self._trusted_header, "")
        self._say(f"{action} by {quote(user, 100) + ' at ' if user else ''}{request.remote}")

    def _open(self, request: web.Request, response: web.Response) -> None:
        now = time.monotonic()
        self._sessions = {digest: until for digest, until in self._sessions.items() if until > now}
        while len(self._sessions) >= _SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[hashlib.sha256(cookie.encode()).digest()] = now + _SESSION_SECONDS
        secure = request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"
        response.set_cookie(_COOKIE, cookie, max_age=_SESSION_SECONDS, httponly=True, samesite="Strict", secure=secure)


def _digest(request: web.Request) -> bytes:
    """Return the key of a client's session. Comparing digests reveals nothing about other cookies."""
    return hashlib.sha256(request.cookies.get(_COOKIE, "").encode()).digest()
