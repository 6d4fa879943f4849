"""Patterns in `tables` that match no table: a misspelled one would leave a table with the default rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from cdc_core.table_id import TableId
from spark_sink.config.settings import TablesSettings
from spark_sink.schema.table_spec import match_rule


def unmatched_patterns(tables: TablesSettings, known: Collection[TableId]) -> list[str]:
    """Return each pattern that matches no known source table, such as `tables.modes: shop.ordrs`.

    There are none before the first table is known: a new pipeline's configuration comes before its tables.
    """
    return list(_unmatched(tables, known)) if known else []


def _unmatched(tables: TablesSettings, known: Collection[TableId]) -> Iterator[str]:
    targets = {tables.pattern.target(table) for table in known}
    for section in ("modes", "keys", "shared", "formats", "buckets", "engines"):
        for pattern in getattr(tables, section):
            if not any(match_rule(target, {pattern: True}) for target in targets):
                yield f"tables.{section}: {pattern}"
    for section in ("rename", "exclude"):
        for pattern in getattr(tables, section):
            if not any(table.fits(pattern) for table in known):
                yield f"tables.{section}: {pattern}"
    sources = {str(table).lower() for table in known}
    for name, patterns in tables.shared.items():
        for pattern in patterns:
            if not any(fnmatchcase(source, pattern.lower()) for source in sources):
                yield f"tables.shared: {name}: {pattern}"
