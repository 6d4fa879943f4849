"""Register new and changed tables in a catalog, and try rejected tables again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from spark_sink.config.settings import Settings
from spark_sink.control_tables.batches import BatchTable
from spark_sink.metrics import Metrics
from spark_sink.schema.table_spec import Format
from spark_sink.table_report import TableReport
from spark_sink.tables.catalog_views import CatalogViews
from spark_sink.tables.registration import Catalog, RegistrationError

log = structlog.get_logger()

# The pause before registration is retried, so that an unavailable catalog does not slow down every batch.
_AGAIN_SECONDS = 60.0


def configured_views(settings: Settings) -> Mapping[Format, CatalogViews]:
    """Return where the sink keeps the views of each format. If a format is missing, its tables have no views."""
    views, catalog, iceberg = {}, settings.catalog, settings.tables.iceberg_catalog
    if catalog is not None and catalog.views is not None:
        views = dict.fromkeys(Format, CatalogViews(catalog.name, catalog.views))
    if iceberg is not None and iceberg.views is not None:
        views[Format.ICEBERG] = CatalogViews(iceberg.name, iceberg.views)
    return views


class Registration:
    """Registers tables in the catalog, and remembers which tables this process has registered.

    Args:
        changed: returns the tables whose columns were changed since the last call. These tables are registered again,
            because the catalog may have views of them.
        clock: returns seconds since any fixed moment.
    """

    def __init__(
        self,
        catalog: Catalog,
        batches: BatchTable,
        metrics: Metrics,
        changed: Callable[[], Collection[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changed = changed
        self._catalog = catalog
        self._batches = batches
        self._metrics = metrics
        self._clock = clock
        self._known: set[str] = set()
        self._waiting: dict[str, float] = {}
        self._begun = False

    def applied(self, reports: Iterable[TableReport]) -> None:
        """Register the tables that a batch wrote or changed. With the first batch, register all existing tables."""
        names = {report.table for report in reports if report.version is not None}
        if not self._begun:
            names |= self._batches.tables()
            self._begun = True
        now = self._clock()
        changed = set(self._changed())
        self._known -= changed
        names |= changed
        due = {name for name, at in self._waiting.items() if at <= now}
        self._offer(sorted((names - self._known - self._waiting.keys()) | due))

    def by_hand(self, names: Collection[str]) -> tuple[list[str], dict[str, str]]:
        """Register these tables now. Return the newly registered tables, and the rejected ones with the reason."""
        return self._offer(sorted(names))

    def _offer(self, names: Collection[str]) -> tuple[list[str], dict[str, str]]:
        new, refused = [], {}
        for name in names:
            try:
                if self._catalog.register(name):
                    new.append(name)
            except RegistrationError as error:
                refused[name] = str(error)
                self._waiting[name] = self._clock() + _AGAIN_SECONDS
                log.warning("table registration failed, will retry", table=name, why=str(error))
                self._metrics.registration_failed()
            else:
                self._known.add(name)
                self._waiting.pop(name, None)
        if new:
            log.info("tables registered", count=len(new))
        return new, refused
