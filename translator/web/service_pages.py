"""A service's pages: status, dead letters, a single dead letter, and its replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from aiohttp import web

from cdc_core.envelope import TableSchema
from cdc_core.table_id import joined_name
from translator.errors import quote
from translator.operations.dlq.reader import StoredLetter
from translator.operations.duration import duration, moment
from translator.operations.status import places_text
from translator.web.access import Access
from translator.web.guarding import form
from translator.web.render import Nav, asked, page
from translator.web.service_view import ServiceView

Found = TypeVar("Found")

_MOST = 200
"""Maximum number of dead letters to list per group, newest first."""

NAV = (("/status", "Status"), ("/letters", "Dead letters"), ("/schemas", "Schemas"))


class LetterGroup(NamedTuple):
    """A source's dead letters with one code."""

    source: str
    code: str
    pending: int
    replayed: int
    discarded: int
    newest: Sequence[StoredLetter]


class ServicePages:
    """The request handlers."""

    def __init__(self, view: ServiceView, access: Access, nav: Nav) -> None:
        self._view = view
        self._nav = nav
        self._access = access

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/status", self._status),
            web.get("/letters", self._letters),
            web.get(r"/letters/{partition:\d{1,9}}/{offset:\d{1,18}}", self._letter),
            web.get("/schemas", self._schemas),
            web.get("/schema", self._schema),
            web.get("/replay", self._dry_run),
            web.post("/replay", self._replay),
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
        return self._page("schema.html", title="Schema", schema=schema, since=since, joined=joined, time=moment)

    async def _letters(self, request: web.Request) -> web.Response:
        dead = await self._asked(self._view.letters)
        if isinstance(dead, web.Response):
            return dead
        groups = list(_grouped(dead.letters))
        granted = self._access.has_login and self._access.is_granted(request)
        content: dict[str, Any] = {"groups": groups, "held": dead.held, "time": moment, "logout": granted}
        return self._page("letters.html", title="Dead letters", **content)

    async def _letter(self, request: web.Request) -> web.Response:
        place = int(request.match_info["partition"]), int(request.match_info["offset"])
        granted = self._access.is_granted(request)
        found = await self._asked(lambda: self._view.letter(*place, reveal=granted))
        if isinstance(found, web.Response):
            return found
        if found is None:
            raise web.HTTPNotFound
        login = None if granted or not self._access.has_login else f"/login?next=/letters/{place[0]}/{place[1]}"
        return self._page("letter.html", title="Dead letter", found=found, time=moment, login=login)

    async def _dry_run(self, request: web.Request) -> web.Response:
        return await self._replayed(request, request.query.get("source", ""), request.query.get("code", ""), False)

    async def _replay(self, request: web.Request) -> web.Response:
        given = await form(request)
        return await self._replayed(request, str(given.get("source", "")), str(given.get("code", "")), True)

    async def _replayed(self, request: web.Request, source: str, code: str, execute: bool) -> web.Response:
        if not self._access.is_granted(request):
            raise web.HTTPForbidden(reason="log in first, because a replay writes events")
        if execute:
            self._access.note(request, f"replay of {quote(source)}, {quote(code)}")
        # A replay takes as long as its dead letters require.
        report = await asked(lambda: self._view.replay(source, code, execute=execute), self._nav, seconds=None)
        if isinstance(report, web.Response):
            return report
        title = "Replayed" if execute else "Replay (dry run)"
        counts = ("letters", "translated", "events", "skipped", "learned", "dead", "impossible", "repeated")
        total = {name: sum(getattr(group, name) for group in report.groups.values()) for name in counts}
        return self._page(
            "replay.html",
            title=title,
            source=source,
            code=code,
            total=total,
            report=report,
            execute=execute,
        )

    async def _login_form(self, request: web.Request) -> web.Response:
        if not self._access.has_login:
            raise web.HTTPNotFound
        return self._page("login.html", title="Log in", next=_inside(request.query.get("next", "")), wrong=False)

    async def _login(self, request: web.Request) -> web.Response:
        given = await form(request)
        to = _inside(str(given.get("next", "")))
        response = web.Response(status=303, headers={"Location": to})
        if await self._access.log_in(request, str(given.get("token", "")), response):
            return response
        return self._page("login.html", status=403, title="Log in", next=to, wrong=True)

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


def _inside(path: str) -> str:
    """Return a path if it belongs to these pages. Any other path is replaced by the path of the dead letters page."""
    return path if path.startswith("/letters/") and path.isprintable() and "//" not in path else "/letters"


def _grouped(letters: Sequence[StoredLetter]) -> Sequence[LetterGroup]:
    def of(stored: StoredLetter) -> tuple[str, str]:
        return stored.letter.source, stored.letter.code

    return [_group(*named, list(found)) for named, found in groupby(sorted(letters, key=of), of)]


def _group(source: str, code: str, letters: Sequence[StoredLetter]) -> LetterGroup:
    discarded = sum(found.discarded is not None for found in letters)
    replayed = sum(found.replayed for found in letters) - discarded
    newest = sorted(letters, key=lambda found: found.timestamp_ms, reverse=True)[:_MOST]
    return LetterGroup(source, code, len(letters) - replayed - discarded, replayed, discarded, newest)
