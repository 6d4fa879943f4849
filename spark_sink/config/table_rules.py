"""The rules of the configuration for all tables, as they travel to the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from cdc_core.table_id import TableId
from spark_sink.schema.engine_choice import EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.statement_rules import StatementRules
from spark_sink.schema.table_spec import Formats, Mode, TableSpec, format_of, match_rule


@dataclass(frozen=True)
class TableRules:
    """The defaults are those of the settings.

    Args:
        all_scopes: a truncate empties its table of what every scope wrote; otherwise several scopes stop the table.
        tombstone_days: so long a deleted row is remembered.
        policies: what becomes of changes of structure.
        park_rejected: a table of which more events of one batch are broken is parked; None: however many.
        statements: what becomes of statements that change existing rows without events of rows.
        soft_deletes: deleted rows keep their values, and are never removed.
        truncated_times: times end at the microsecond; otherwise columns with finer ones are text.
        modes, keys: by name or pattern of tables, what they hold, and their declared key columns.
        shared: by name or pattern of tables, patterns of the source tables that go to one.
        exclude: patterns of source tables that are left out.
        engines: who writes which table.
        formats: of tables, by name or pattern.
        buckets: of new Iceberg tables, by name or pattern.
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

    def form(self, target: str) -> TableSpec:
        """Return the specification of the table of this name."""
        mode, format = match_rule(target, self.modes) or Mode.MIRROR, format_of(target, self.formats)
        return TableSpec(mode, match_rule(target, self.keys) or (), match_rule(target, self.shared) is not None, format)

    def shares(self, target: str, source: str) -> bool:
        """Tell whether a source table, named `source/db/schema/table`, may go to a table with others. Case counts for
        nothing: names that differ by nothing else are what makes tables meet."""
        patterns = match_rule(target, self.shared) or ()
        return any(fnmatchcase(source.lower(), pattern.lower()) for pattern in patterns)

    def excludes(self, table: TableId) -> bool:
        """Tell whether the events of a source table are left out."""
        return any(table.fits(pattern) for pattern in self.exclude)
