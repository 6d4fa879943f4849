"""Apply the security rules to every page: no content from other sites, no requests to them, no embedding."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from translator.web.render import page

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without it, our own forms would have no origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BODY_SECONDS = 30.0

_SAFE = frozenset({"GET", "HEAD"})


def guarded(hosts: Collection[str]) -> list[Middleware]:
    """Return an application's middlewares.

    Args:
        hosts: the host names to accept, in lower case. This blocks a foreign site whose name resolves to this machine.
    """

    @web.middleware
    async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _answered(request, handler)
        response.headers.update(HEADERS)
        return response

    @web.middleware
    async def origins(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            host, is_ours = _host(request.host), request.method in _SAFE or _is_ours(request)
        except ValueError:
            return _refused(400, "the Host or Origin header is not a valid address")
        if host not in hosts:
            return _refused(403, f"this page is not served under the host name {request.host[:100]}")
        if not is_ours:
            return _refused(403, "the form was sent from another site")
        return await handler(request)

    return [headers, origins]


async def form(request: web.Request) -> Mapping[str, object]:
    """Return a form's fields.

    Raises:
        HTTPRequestTimeout: the client does not send the fields in time. The limit keeps clients from holding
            connections open.
    """
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.post()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _refused(error.status, _REASONS.get(error.status, error.reason))


_REASONS = {
    404: "this page does not exist",
    405: "this page does not support this kind of request",
    408: "the form did not arrive in time",
    413: "the message is too large for this page",
    429: "too many logins are in progress; try again in a moment",
}


def _refused(status: int, why: str) -> web.Response:
    return page("refused.html", status=status, title="Request rejected", why=why)


def _host(host: str) -> str:
    """Return the name without the port.

    Raises:
        ValueError: the text is not an address.
    """
    return (urlsplit(f"//{host}").hostname or "").lower()


def _is_ours(request: web.Request) -> bool:
    """Return whether a form was sent from our own page. Browsers report the origin. Other programs send none.

    Raises:
        ValueError: the origin is not an address.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
