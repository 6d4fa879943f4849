"""A service's pages: status, schemas and the login. The pages of its dead letters are in `letter_pages`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from cdc_core.envelope import TableSchema
from cdc_core.table_id import joined_name
from translator.operations.duration import duration, moment
from translator.operations.status import places_text
from translator.web.access import Access
from translator.web.guarding import form
from translator.web.render import asked, page
from translator.web.schema_history import timeline
from translator.web.service_view import ServiceView
from translator.web.templating import Nav

Found = TypeVar("Found")

NAV = (("/status", "Status"), ("/letters", "Dead letters"), ("/schemas", "Schemas"))


class ServicePages:
    """The request handlers."""

    def __init__(self, view: ServiceView, access: Access, nav: Nav) -> None:
        self._view = view
        self._nav = nav
        self._access = access

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/status", self._status),
            web.get("/schemas", self._schemas),
            web.get("/schema", self._schema),
            web.get("/login", self._login_form),
            web.post("/login", self._login),
            web.post("/logout", self._logout),
        ]

    async def _status(self, request: web.Request) -> web.Response:
        status = await self._asked(self._view.status)
        if isinstance(status, web.Response):
            return status
        template = "status_part.html" if "part" in request.query else "status.html"
        return self._page(template, title="Status", status_=status, time=moment, duration=duration, places=places_text)

    async def _schemas(self, request: web.Request) -> web.Response:
        known = await self._asked(self._view.known)
        if isinstance(known, web.Response):
            return known
        newest = sorted(known.schemas.items(), key=lambda item: (joined(item[1][1]), -item[1][0]))
        documents = sorted(known.metadata.items())
        return self._page(
            "schemas.html", title="Schemas", schemas=newest, documents=documents, joined=joined, time=moment
        )

    async def _schema(self, request: web.Request) -> web.Response:
        known = await self._asked(self._view.known)
        if isinstance(known, web.Response):
            return known
        found = known.schemas.get(request.query.get("key", ""))
        if found is None:
            raise web.HTTPNotFound
        since, schema = found
        return self._page(
            "schema.html",
            title="Schema",
            schema=schema,
            since=since,
            joined=joined,
            time=moment,
            steps=timeline(known.schemas, schema),
        )

    async def _login_form(self, request: web.Request) -> web.Response:
        if not self._access.has_login:
            raise web.HTTPNotFound
        to = _inside(request.query.get("next", ""))
        granted = self._access.is_granted(request)
        return self._page("login.html", title="Log in", next=to, wrong=False, granted=granted)

    async def _login(self, request: web.Request) -> web.Response:
        given = await form(request)
        to = _inside(str(given.get("next", "")))
        response = web.Response(status=303, headers={"Location": to})
        if await self._access.log_in(request, str(given.get("token", "")), response):
            return response
        return self._page("login.html", status=403, title="Log in", next=to, wrong=True, granted=False)

    async def _logout(self, request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": "/letters"})
        self._access.log_out(request, response)
        return response

    def _page(self, template: str, *, status: int = 200, **content: Any) -> web.Response:
        return page(template, status=status, nav=self._nav, **content)

    async def _asked(self, ask: Callable[[], Found]) -> Found | web.Response:
        return await asked(ask, self._nav)


def joined(schema: TableSchema) -> str:
    return joined_name(schema.db, schema.schema, schema.table)


_INSIDE = ("/letters/", "/letters?", "/replay?")


def _inside(path: str) -> str:
    """Return a path if it belongs to the dead-letter pages, and otherwise the path of their list."""
    return path if path.startswith(_INSIDE) and path.isprintable() and "//" not in path else "/letters"
