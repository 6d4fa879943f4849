"""Access to values and actions: nobody, users with a token, or users authenticated by a proxy."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

from aiohttp import web

_COOKIE = "cdc_desk"


class Access(NamedTuple):
    """The configured ways to log in, if any.

    Args:
        token: anyone who presents it can see values and act.
        trusted_header: set by a proxy that authenticates users. Without the proxy, anyone could set it.
    """

    token: str | None = None
    trusted_header: str | None = None

    @property
    def has_login(self) -> bool:
        return self.token is not None

    def is_granted(self, request: web.Request) -> bool:
        """Return whether the client can see values and act."""
        if self.trusted_header is not None and request.headers.get(self.trusted_header):
            return True
        cookie = request.cookies.get(_COOKIE)
        return self.token is not None and cookie is not None and hmac.compare_digest(cookie.encode(), _pass(self.token))

    def log_in(self, token: str, response: web.Response) -> bool:
        """Log a client in if the token is correct. Returns whether it was."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        response.set_cookie(_COOKIE, _pass(self.token).decode(), httponly=True, samesite="Strict")
        return True


# A session belongs to one process: after a restart, everyone logs in again. No cookie contains the token itself.
_SALT = secrets.token_bytes(32)


def _pass(token: str) -> bytes:
    return hashlib.sha256(_SALT + token.encode()).hexdigest().encode()
