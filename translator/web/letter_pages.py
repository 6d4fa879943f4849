"""Show the dead-letter pages: the list with filters, a single dead letter, and the replay of a group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from aiohttp import web

from translator.errors import quote, unknown
from translator.operations.dlq.reader import LetterFilter, StoredLetter
from translator.operations.duration import duration, moment
from translator.web.access import Access
from translator.web.guarding import form
from translator.web.render import asked, page
from translator.web.service_view import ServiceView
from translator.web.templating import Nav

Found = TypeVar("Found")

_MOST = 200
"""Maximum number of dead letters to list, newest first."""

_HOUR_MS = 60 * 60 * 1000

_WITHIN: Mapping[str, int | None] = {
    "any time": None,
    "last hour": _HOUR_MS,
    "last day": 24 * _HOUR_MS,
    "last week": 7 * 24 * _HOUR_MS,
}

_STATES: Mapping[str, frozenset[str]] = {
    "open": frozenset({"open"}),
    "all": frozenset({"open", "replayed", "discarded"}),
}


class LetterGroup(NamedTuple):
    """A source's dead letters with one code.

    Args:
        oldest_ms: the time of the oldest open dead letter, or None if all are closed.
        newest_ms: the time of the newest dead letter in any state.
    """

    source: str
    code: str
    open: int
    replayed: int
    discarded: int
    oldest_ms: int | None
    newest_ms: int


class FilterChoice(NamedTuple):
    """A filter for the list, with its possible values. The first value restricts nothing, except in the filter for the
    state.
    """

    name: str
    label: str
    values: Sequence[str]
    chosen: str


class LetterPages:
    """The request handlers."""

    def __init__(self, view: ServiceView, access: Access, nav: Nav) -> None:
        self._view = view
        self._access = access
        self._nav = nav
        # A dry run needs no login, so a limit keeps threads free for the other pages.
        self._dry_runs = asyncio.Semaphore(1)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/letters", self._letters),
            web.get(r"/letters/{partition:\d{1,9}}/{offset:\d{1,18}}", self._letter),
            web.get("/replay", self._dry_run),
            web.post("/replay", self._replay),
        ]

    async def _letters(self, request: web.Request) -> web.Response:
        dead = await self._asked(self._view.letters)
        if isinstance(dead, web.Response):
            return dead
        now = _now_ms()
        choices = _choices(request.query, dead.letters)
        found = _selected(dead.letters, choices, now)
        return self._page(
            "letters.html",
            title="Dead letters",
            groups=_grouped(dead.letters),
            held=dead.held,
            choices=choices,
            found=found[:_MOST],
            left_out=len(found) - len(found[:_MOST]),
            reason=self._view.reason,
            state=state,
            time=moment,
            age=lambda ms: age(ms, now),
        )

    async def _letter(self, request: web.Request) -> web.Response:
        place = int(request.match_info["partition"]), int(request.match_info["offset"])
        granted = self._access.is_granted(request)
        found = await self._asked(lambda: self._view.letter(*place, reveal=granted))
        if isinstance(found, web.Response):
            return found
        if found is None:
            raise web.HTTPNotFound
        stored = found.stored
        return self._page(
            "letter.html",
            title="Dead letter",
            found=found,
            state=state(stored),
            masked=self._view.is_masked(stored),
            time=moment,
            age=age(stored.timestamp_ms, _now_ms()),
            login=None if granted else self._login(request),
        )

    async def _dry_run(self, request: web.Request) -> web.Response:
        source, code = request.query.get("source", ""), request.query.get("code", "")
        dead = await self._asked(self._view.letters)
        if isinstance(dead, web.Response):
            return dead
        if (source, code) not in {_group_of(found) for found in dead.letters}:
            raise web.HTTPNotFound
        async with self._dry_runs:
            return await self._replayed(request, source, code, execute=False)

    async def _replay(self, request: web.Request) -> web.Response:
        if not self._access.is_granted(request):
            raise web.HTTPForbidden(reason="log in first, because a replay writes events")
        given = await form(request)
        source, code = str(given.get("source", "")), str(given.get("code", ""))
        self._access.note(request, f"replay of {quote(source)}, {quote(code)}")
        return await self._replayed(request, source, code, execute=True)

    async def _replayed(self, request: web.Request, source: str, code: str, *, execute: bool) -> web.Response:
        # A replay takes as long as its dead letters require.
        report = await asked(lambda: self._view.replay(source, code, execute=execute), self._nav, seconds=None)
        if isinstance(report, web.Response):
            return report
        counts = ("letters", "translated", "events", "skipped", "learned", "dead", "impossible", "repeated")
        total = {name: sum(getattr(group, name) for group in report.groups.values()) for name in counts}
        granted = self._access.is_granted(request)
        return self._page(
            "replay.html",
            title="Replayed" if execute else "Replay (dry run)",
            source=source,
            code=code,
            total=total,
            report=report,
            execute=execute,
            granted=granted,
            login=None if granted else self._login(request),
        )

    def _login(self, request: web.Request) -> str | None:
        """Return the address of the login that leads back to this page, or None if nobody can log in with a token."""
        return f"/login?{urlencode({'next': request.path_qs})}" if self._access.has_login else None

    def _page(self, template: str, **content: Any) -> web.Response:
        return page(template, nav=self._nav, **content)

    async def _asked(self, ask: Callable[[], Found]) -> Found | web.Response:
        return await asked(ask, self._nav)


def state(stored: StoredLetter) -> str:
    """Return what happened to a dead letter: nothing yet (open), a replay, or its discard."""
    if stored.discarded is not None:
        return "discarded"
    return "replayed" if stored.replayed else "open"


def age(ms: int, now_ms: int) -> str:
    """Return how long ago a time was. A time in the future counts as now."""
    return f"{duration(max(0, now_ms - ms) / 1000)} ago"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _group_of(stored: StoredLetter) -> tuple[str, str]:
    return stored.letter.source, stored.letter.code


def _choices(query: Mapping[str, str], letters: Sequence[StoredLetter]) -> list[FilterChoice]:
    """Return the filters with the chosen values.

    Raises:
        HTTPBadRequest: the query contains a value that a filter does not have.
    """
    tables = {table for found in letters for table in found.tables}
    filters = [
        ("source", "Source", ["", *sorted({found.letter.source for found in letters})]),
        ("code", "Code", ["", *sorted({found.letter.code for found in letters})]),
        ("table", "Table", ["", *sorted(tables)]),
        ("within", "Written", list(_WITHIN)),
        ("state", "State", list(_STATES)),
    ]
    choices = [FilterChoice(name, label, values, query.get(name, values[0])) for name, label, values in filters]
    for choice in choices:
        # A bookmark can name a source, a code or a table that has no dead letters any more.
        if choice.chosen not in choice.values and choice.name in ("within", "state"):
            raise web.HTTPBadRequest(reason=unknown(choice.name, choice.chosen, choice.values))
    return choices


def _selected(letters: Sequence[StoredLetter], choices: Sequence[FilterChoice], now_ms: int) -> list[StoredLetter]:
    """Return the dead letters that the filters select, newest first."""
    chosen = {choice.name: choice.chosen for choice in choices}
    within = _WITHIN[chosen["within"]]
    wanted = LetterFilter(
        sources=_only(chosen["source"]),
        codes=_only(chosen["code"]),
        tables=_only(chosen["table"]),
        since_ms=None if within is None else now_ms - within,
    )
    found = [stored for stored in letters if wanted.selects(stored) and state(stored) in _STATES[chosen["state"]]]
    return sorted(found, key=lambda stored: stored.timestamp_ms, reverse=True)


def _only(name: str) -> Sequence[str]:
    return (name,) if name else ()


def _grouped(letters: Sequence[StoredLetter]) -> list[LetterGroup]:
    """Return the groups, those with open dead letters first."""
    groups = [_group(*named, list(found)) for named, found in groupby(sorted(letters, key=_group_of), _group_of)]
    return sorted(groups, key=lambda group: not group.open)


def _group(source: str, code: str, letters: Sequence[StoredLetter]) -> LetterGroup:
    states = [state(found) for found in letters]
    times = [found.timestamp_ms for found in letters]
    open_times = [ms for ms, found in zip(times, states, strict=True) if found == "open"]
    return LetterGroup(
        source,
        code,
        open=states.count("open"),
        replayed=states.count("replayed"),
        discarded=states.count("discarded"),
        oldest_ms=min(open_times, default=None),
        newest_ms=max(times),
    )
