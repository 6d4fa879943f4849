"""Show the home page: the pipeline with the state of each part, and what needs attention now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from aiohttp import web

from translator.errors import CdcError
from translator.operations.counted import counted
from translator.operations.duration import duration, moment
from translator.operations.status import PartitionStatus, places_text
from translator.web.drawing import DrawnPart, across, down
from translator.web.measurements import Measurements, Sparkline
from translator.web.needs import Facts, Need, Part, by_rule, needs
from translator.web.render import asked, page
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkState, SinkView
from translator.web.templating import Nav

HOME = ("/home", "Home")

_SINK_SECONDS = 20.0
"""Maximum time to wait for the sink's program, which must not delay the rest of the page."""

_FRESHNESS = "freshness"
"""The name of the tables' freshness in the history. Other names have a space."""

_STATES = {"critical": "broken", "warning": "degraded"}


class PipelinePart(NamedTuple):
    """A part of the pipeline.

    Args:
        state: `healthy`, `degraded`, `broken`, or `unknown`.
        facts: sentences about it. The picture shows the first one.
        stage: the position in the picture, counted from the sources.
    """

    name: str
    state: str
    page: str
    facts: Sequence[str]
    stage: int


class SourceLag(NamedTuple):
    """A source's backlog over all its partitions, and its history."""

    source: str
    partitions: int
    lag: int
    behind_seconds: float
    lag_line: Sparkline | None = None
    behind_line: Sparkline | None = None


class HomePages:
    """The request handlers.

    Args:
        sink: None if no sink is configured.
    """

    def __init__(self, view: ServiceView, sink: SinkView | None, nav: Nav) -> None:
        self._view = view
        self._sink = sink
        self._nav = nav
        self._measurements = Measurements()
        # The sink's program can be slow, and must not occupy the threads of other pages.
        self._sink_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sink")

    def routes(self) -> list[web.RouteDef]:
        return [web.get(HOME[0], self._home)]

    async def _home(self, request: web.Request) -> web.Response:
        facts, (state, error) = await asyncio.gather(asked(self._facts, self._nav), self._sink_state())
        if isinstance(facts, web.Response):
            return facts
        facts = Facts(facts.status, facts.letters, state)
        found = needs(facts)
        parts = self._parts(facts, found, error)
        drawn = [DrawnPart(part.name, part.state, part.facts[0] if part.facts else "", part.stage) for part in parts]
        return page(
            "home_part.html" if "part" in request.query else "home.html",
            title=HOME[1],
            nav=self._nav,
            status_=facts.status,
            needs=found,
            advice=by_rule(found),
            overall=_worst(found),
            parts=parts,
            across=across(drawn),
            down=down(drawn),
            summary=f"{'; '.join(f'{part.name} {part.state}' for part in drawn)}. The list of parts has the details.",
            lags=self._lags(facts),
            freshness=self._measurements.line(_FRESHNESS, duration),
            time=moment,
            duration=duration,
            places=places_text,
        )

    def _facts(self) -> Facts:
        status = self._view.status()
        # Without its topics, the service has no dead letters to read.
        return Facts(status, () if status.missing else self._view.letters().letters)

    async def _sink_state(self) -> tuple[SinkState | None, str | None]:
        """Return the sink's state, or the reason why it is unknown."""
        if self._sink is None:
            return None, None
        try:
            asking = asyncio.get_running_loop().run_in_executor(self._sink_thread, self._sink.state)
            return await asyncio.wait_for(asking, _SINK_SECONDS), None
        except CdcError as error:
            return None, str(error)
        except TimeoutError:
            return None, f"spark-sink did not respond within {_SINK_SECONDS:g} s"

    def _parts(self, facts: Facts, found: Sequence[Need], error: str | None) -> list[PipelinePart]:
        settings, status = self._view.settings, facts.status

        def state(part: Part) -> str:
            return _worst([need for need in found if need.rule.part == part])

        lag = sum(partition.lag for partition in status.partitions)
        behind = max((partition.behind_seconds for partition in status.partitions), default=0.0)
        dead = sum(letters.count for letters in status.dead)
        sources = [counted(len(settings.sources), "source"), counted(len(status.partitions), "partition")]
        backlog = f"lag {lag}" + (f", {duration(behind)} behind" if lag else "")
        parts = [
            PipelinePart("Sources", state("sources"), "/status", sources, 0),
            PipelinePart("Translator", state("translator"), "/status", [backlog, status.membership], 1),
            PipelinePart(
                "Canonical topic",
                state("topic"),
                "/letters",
                [counted(dead, "open dead letter"), settings.output.topic],
                2,
            ),
        ]
        if settings.projections:
            names = [projection.topic for projection in settings.projections]
            parts.append(PipelinePart("Projections", state("projections"), "/letters", names, 3))
        if self._sink is not None:
            tables = _tables(facts.sink) if facts.sink else [error or ""]
            parts.append(PipelinePart("Tables", state("tables") if facts.sink else "unknown", "/sink", tables, 3))
        return parts

    def _lags(self, facts: Facts) -> list[SourceLag]:
        """Add the current state to the history, and return each source's backlog, oldest first."""
        lags = _lags(facts.status.partitions)
        seen = {f"lag {lag.source}": float(lag.lag) for lag in lags}
        seen |= {f"behind {lag.source}": lag.behind_seconds for lag in lags}
        if facts.sink and facts.sink.batches:
            seen = {_FRESHNESS: _batch_age(facts.sink), **seen}
        self._measurements.add(facts.status.at_ms, seen)
        line = self._measurements.line
        return [
            lag._replace(
                lag_line=line(f"lag {lag.source}", lambda value: f"{value:.0f}"),
                behind_line=line(f"behind {lag.source}", duration),
            )
            for lag in lags
        ]


def _worst(found: Sequence[Need]) -> str:
    severities = {need.rule.severity for need in found}
    return next((name for severity, name in _STATES.items() if severity in severities), "healthy")


def _tables(sink: SinkState) -> list[str]:
    """Return facts about the tables, starting with the ones that need action."""
    parked = sum(table.parked is not None for table in sink.status.tables)
    newest = f"newest batch {duration(_batch_age(sink))} ago" if sink.batches else "no batch yet: start the sink"
    return [*([f"{parked} parked"] if parked else []), newest, counted(len(sink.status.tables), "table")]


def _batch_age(sink: SinkState) -> float:
    """Return the seconds since the newest batch ended."""
    return max(0.0, time.time() - max(batch.ended_at.timestamp() for batch in sink.batches))


def _lags(partitions: Sequence[PartitionStatus]) -> list[SourceLag]:
    """Return the backlog of each source, the oldest first."""
    of: dict[str, list[PartitionStatus]] = {}
    for partition in partitions:
        of.setdefault(partition.source, []).append(partition)
    lags = [
        SourceLag(source, len(each), sum(p.lag for p in each), max(p.behind_seconds for p in each))
        for source, each in of.items()
    ]
    return sorted(lags, key=lambda lag: lag.behind_seconds, reverse=True)
