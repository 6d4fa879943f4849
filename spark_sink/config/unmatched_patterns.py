"""Find patterns in `tables` that match no table. A misspelled pattern would silently leave a table with the default
rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from cdc_core.table_id import TableId
from spark_sink.config.settings import TablesSettings
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import match_rule


def unmatched_patterns(tables: TablesSettings, known: Collection[TableId]) -> list[str]:
    """Return each pattern that matches no known source table, such as `tables.modes: shop.ordrs`.

    Until the first table is known, the result is empty, because a new pipeline is configured before its tables exist.
    """
    return list(_unmatched(tables, known)) if known else []


def _unmatched(tables: TablesSettings, known: Collection[TableId]) -> Iterator[str]:
    by_name: Mapping[str, Iterable[str]] = {
        "modes": tables.modes,
        "keys": tables.keys,
        "shared": tables.shared,
        "formats": tables.formats,
        "buckets": tables.buckets,
        "layout": tables.layout,
        "engines": tables.engines,
    }
    naming = tables.pattern
    targets = {naming.target(table) for table in known}
    for section, patterns in by_name.items():
        for pattern in patterns:
            if not any(match_rule(target, {pattern: True}) for target in targets):
                yield f"tables.{section}: {pattern}"
    by_source: Mapping[str, Iterable[str]] = {"rename": tables.rename, "exclude": tables.exclude}
    for section, patterns in by_source.items():
        for pattern in patterns:
            if not any(table.fits(pattern) for table in known):
                yield f"tables.{section}: {pattern}"
    for name, patterns in tables.shared.items():
        for pattern in patterns:
            sharing = TableRules(shared={name: (pattern,)})
            if not any(sharing.shares(name, str(table)) for table in known):
                yield f"tables.shared: {name}: {pattern}"
