"""The rules that every page is served by: nothing from elsewhere, nothing to elsewhere, nobody between."""

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
    "Referrer-Policy": "same-origin",  # without one, a form of ours has no origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SAFE = frozenset({"GET", "HEAD"})


def guarded(hosts: Collection[str]) -> list[Middleware]:
    """The middlewares of an application.

    Args:
        hosts: names under which it may be asked, lower case; a page elsewhere whose name was pointed at this machine
            has another one.
    """

    @web.middleware
    async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _answered(request, handler)
        response.headers.update(HEADERS)
        return response

    @web.middleware
    async def origins(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _host(request.host) not in hosts:
            return _refused(403, f"this page is not served under the name {request.host[:100]}")
        if request.method not in _SAFE and not _is_ours(request):
            return _refused(403, "the form was sent by a page from elsewhere")
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
    404: "there is no such page",
    405: "the page takes no such request",
    413: "the message is larger than this page takes",
}


def _refused(status: int, why: str) -> web.Response:
    return page("refused.html", status=status, title="Refused", why=why)


def _host(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower()


def _is_ours(request: web.Request) -> bool:
    """Tell whether a form comes from a page of ours: browsers say so, and a program that is no browser has no page."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host
