"""Run the playground as a standalone application. It needs no broker and no configuration, and runs on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from aiohttp import web

from translator.web import service_pages, sink_pages
from translator.web.access import Access
from translator.web.guarding import form, guarded
from translator.web.home_pages import HOME, HomePages
from translator.web.letter_pages import LetterPages
from translator.web.meanings import meanings, runbooks
from translator.web.playground import BYTES, samples
from translator.web.playground_page import asked, blank, translated, translated_sample
from translator.web.render import page, static
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkView
from translator.web.templating import Nav

# Room for a form with two texts of maximum size and its field names.
_FORM_BYTES = 2 * BYTES + 64 * 1024

# Translating occupies a CPU, so other requests wait.
_AT_ONCE = 2

_STATIC = {"desk.css": "text/css", "desk.js": "text/javascript", "desk.svg": "image/svg+xml"}

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def application(
    hosts: Collection[str],
    service: ServiceView | None = None,
    access: Access | None = None,
    sink: SinkView | None = None,
) -> web.Application:
    """Return the application.

    Args:
        hosts: the host names to accept, in addition to this machine's names.
        service: adds pages for its status and dead letters.
        access: access to values and actions. If None, nobody has access.
        sink: adds a page for its tables.
    """
    known = _LOCAL | {host.lower() for host in hosts}
    app = web.Application(middlewares=guarded(known), client_max_size=_FORM_BYTES)
    app.add_routes(
        [
            web.get("/", _form),
            web.post("/", _answered),
            web.get("/codes", _codes),
            web.get("/runbooks", _runbooks),
            web.get("/static/{name}", _static),
        ]
    )
    others = (*(service_pages.NAV if service is not None else ()), *(sink_pages.NAV if sink is not None else ()))
    access = access or Access()
    login = (("/login", "Log in"),) if service is not None and access.has_login else ()
    home = (HOME,) if service is not None else ()
    nav = (*home, ("/", "Playground"), *others, ("/codes", "Codes"), *login)
    if service is not None:
        app.add_routes(service_pages.ServicePages(service, access, nav).routes())
        app.add_routes(LetterPages(service, access, nav).routes())
        app.add_routes(HomePages(service, sink, nav).routes())
    if sink is not None:
        app.add_routes(sink_pages.SinkPages(sink, nav).routes())
    app[_TURNS] = asyncio.Semaphore(_AT_ONCE)
    app[_NAV] = nav
    return app


_TURNS = web.AppKey("turns", asyncio.Semaphore)
_NAV: web.AppKey[Nav] = web.AppKey("nav")


async def _form(request: web.Request) -> web.Response:
    name = request.query.get("sample")
    if name is None:
        return _page(request, blank())
    if name not in samples():
        raise web.HTTPNotFound
    async with request.app[_TURNS]:
        return _page(request, await asyncio.to_thread(translated_sample, samples()[name]))


async def _answered(request: web.Request) -> web.Response:
    given = {name: value for name, value in (await form(request)).items() if isinstance(value, str)}
    async with request.app[_TURNS]:
        content = await asyncio.to_thread(translated, asked(given))
    return _page(request, content, status=422 if content["error"] else 200)


def _page(request: web.Request, content: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """Return the playground. If the page requests it while the user types, return only the result."""
    template = "answer.html" if "part" in request.query else "playground.html"
    return page(template, status=status, nav=request.app[_NAV], **content)


async def _codes(request: web.Request) -> web.Response:
    return page("codes.html", title="Codes", nav=request.app[_NAV], meanings=meanings())


async def _runbooks(request: web.Request) -> web.Response:
    return page("runbooks.html", title="Runbooks", nav=request.app[_NAV], runbooks=runbooks())


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _STATIC:
        raise web.HTTPNotFound
    return web.Response(body=static(name), content_type=_STATIC[name], charset="utf-8")
