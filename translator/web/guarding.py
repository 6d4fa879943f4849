"""Security rules for every page: no content from other sites, no requests to other sites, no embedding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
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

_SAFE = frozenset({"GET", "HEAD"})


def guarded(hosts: Collection[str]) -> list[Middleware]:
    """Return an application's middlewares.

    Args:
        hosts: accepted host names, in lower case. This stops a foreign site whose name resolves to this machine.
    """

    @web.middleware
    async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _answered(request, handler)
        response.headers.update(HEADERS)
        return response

    @web.middleware
    async def origins(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _host(request.host) not in hosts:
            return _refused(403, f"this page is not served under the host name {request.host[:100]}")
        if request.method not in _SAFE and not _is_ours(request):
            return _refused(403, "the form was sent from another site")
        return await handler(request)

    return [headers, origins]


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _refused(error.status, _REASONS.get(error.status, error.reason))


_REASONS = {
    404: "this page does not exist",
    405: "this page does not support such requests",
    413: "the message is too large for this page",
}


def _refused(status: int, why: str) -> web.Response:
    return page("refused.html", status=status, title="Request rejected", why=why)


def _host(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower()


def _is_ours(request: web.Request) -> bool:
    """Return whether a form was sent from our own page. Browsers report this, and other programs send no origin."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
