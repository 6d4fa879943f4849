"""The sink's page: tables, parked tables, batches, quarantine."""

from __future__ import annotations

from aiohttp import web

from translator.web.render import asked, page
from translator.web.sink_view import SinkView
from translator.web.templating import Nav

NAV = (("/sink", "Lakehouse"),)


class SinkPages:
    """The request handlers."""

    def __init__(self, view: SinkView, nav: Nav) -> None:
        self._view = view
        self._nav = nav

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/sink", self._sink)]

    async def _sink(self, request: web.Request) -> web.Response:
        state = await asked(self._view.state, self._nav)
        if isinstance(state, web.Response):
            return state
        return page("sink.html", title="Lakehouse", nav=self._nav, state=state)
