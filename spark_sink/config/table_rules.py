"""The rules for tables from the configuration, in the form that is sent to the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from cdc_core.table_contract import TableContract
from cdc_core.table_id import TableId
from spark_sink.schema.engine_choice import EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.layout import FileLayouts
from spark_sink.schema.statement_rules import StatementRules
from spark_sink.schema.table_spec import Formats, Mode, TableSpec, format_of, match_rule


@dataclass(frozen=True)
class TableRules:
    """The configured table rules. The defaults are those of the settings.

    Args:
        all_scopes: whether a truncate deletes the rows from every scope. Otherwise, a truncate parks a table that
            several scopes write to.
        tombstone_days: how long deleted rows are remembered.
        policies: the policy for each kind of schema change.
        park_rejected: the maximum number of invalid events per batch. Beyond it, the table is parked. None means no
            limit.
        statements: the rules for statements that change existing rows without row events.
        soft_deletes: whether deleted rows keep their values and are never removed.
        truncated_times: whether times are truncated to the microsecond. Otherwise, columns with more precise times are
            text.
        modes: the table modes, keyed by table name or pattern.
        keys: the declared key columns, keyed by table name or pattern.
        shared: patterns for the source tables that share a table, keyed by that table's name or pattern.
        exclude: patterns for source tables to ignore.
        engines: the engine for each table.
        formats: the table formats, keyed by table name or pattern.
        buckets: the number of buckets for new Iceberg tables, keyed by table name or pattern.
        layouts: the layout for new tables, keyed by table name or pattern.
        max_tables: the maximum number of tables. Once it is reached, no more are created.
        parks_new: whether only an operator's commands create tables.
        contracts: the contracts by source table. A table that breaks its contract is parked.
    """

    all_scopes: bool = False
    tombstone_days: int = 7
    policies: Mapping[ShapeChange, Policy] = field(default_factory=lambda: DEFAULTS)
    park_rejected: int | None = None
    statements: StatementRules = field(default_factory=StatementRules)
    soft_deletes: bool = False
    truncated_times: bool = False
    modes: Mapping[str, Mode] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exclude: Sequence[str] = ()
    engines: EngineRules = field(default_factory=EngineRules)
    formats: Formats = field(default_factory=dict)
    buckets: Mapping[str, int] = field(default_factory=dict)
    layouts: FileLayouts = field(default_factory=dict)
    max_tables: int = 10_000
    parks_new: bool = False
    contracts: Mapping[TableId, TableContract] = field(default_factory=dict)

    def form(self, target: str) -> TableSpec:
        """Return the specification for the table with this name."""
        mode, format = match_rule(target, self.modes) or Mode.MIRROR, format_of(target, self.formats)
        key, shared = match_rule(target, self.keys) or (), match_rule(target, self.shared) is not None
        return TableSpec(mode, key, shared, format, self.soft_deletes)

    def shares(self, target: str, source: str) -> bool:
        """Return whether a source table, written as `source/db/schema/table`, is declared to share a table. Case is
        ignored, because names that differ only in case are the same table name.
        """
        patterns = match_rule(target, self.shared) or ()
        return any(fnmatchcase(source.lower(), pattern.lower()) for pattern in patterns)

    def excludes(self, table: TableId) -> bool:
        """Return whether a source table's events are ignored."""
        return any(table.fits(pattern) for pattern in self.exclude)
