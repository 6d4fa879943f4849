"""Several source tables can share a lakehouse table, as declared in `tables.shared` (docs/sink-design.md, R16).

A key column with the name of the source table keeps the rows of different source tables apart. Scopes contain this
name, too. One raw partition may have events for many tables, and truncating one table must not affect the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.events.envelope_fields import image_columns
from spark_sink.events.grouping import Intake
from spark_sink.model.event import Event
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.table_naming import TablePattern
from spark_sink.schema.table_spec import SOURCE

# Takes the place of the source name in a shared table. No source can have this name.
SEVERAL = "*"

# Separates a scope from the source table. Topic and task names can contain this character, so it is only used in shared
# tables.
_OF = "|"


def owner_of(table: TableId, pattern: TablePattern, rules: TableRules) -> TableId:
    """Return the shared table that a source table belongs to, or the table itself."""
    target = pattern.target(table)
    return TableId(SEVERAL, None, None, target) if rules.shares(target, str(table)) else table


def target_of(table: TableId, pattern: TablePattern) -> str:
    """Return the lakehouse name for a result of `owner_of`."""
    return table.table if table.source == SEVERAL else pattern.target(table)


def pooled(
    taken: Mapping[TableId | None, Intake], catalog: SchemaCatalog, pattern: TablePattern, rules: TableRules
) -> tuple[dict[TableId | None, Intake], SchemaCatalog]:
    """Group the events of tables by destination, in order. Also return a catalog with the schemas of all these
    tables.
    """
    found: dict[TableId | None, Intake] = {}
    parts: dict[TableId, list[TableId]] = {}
    together: dict[TableId, list[Event]] = {}
    spelled: dict[str, TableId] = {}  # names that differ only in case are the same; the first one is used
    for table, incoming in taken.items():
        owner = None if table is None else owner_of(table, pattern, rules)
        if table is None or owner is None or owner == table:
            found[table] = incoming
            continue
        owner = spelled.setdefault(owner.table.lower(), owner)
        into = found.setdefault(owner, Intake(together.setdefault(owner, []), [], Counter()))
        parts.setdefault(owner, []).append(table)
        together[owner] += _marked(incoming.events, table)
        into.rejected += incoming.rejected
        into.ignored.update(incoming.ignored)
        into.statements.update(incoming.statements)
    for owner, tables in parts.items():
        together[owner].sort(key=lambda event: event.index)
        catalog = catalog.joined(owner, tables)
    return found, catalog


def is_same(table: TableId, other: TableId) -> bool:
    """Return whether two owners are the same."""
    return table == other or (table.source == other.source == SEVERAL and table.table.lower() == other.table.lower())


def _marked(events: Iterable[Event], table: TableId) -> list[Event]:
    """Return the events with the source table added to their scopes and keys."""
    scopes: dict[str, str] = {}
    marked = []
    for event in events:
        scope = scopes.setdefault(event.scope, f"{event.scope}{_OF}{table}")
        key_old = None if event.key_old is None else with_source(event.key_old, table)
        marked.append(msgspec.structs.replace(event, scope=scope, key=with_source(event.key, table), key_old=key_old))
    return marked


def with_source(key: str, table: TableId) -> str:
    """Add the source table to a row key. An unknown key stays unknown."""
    columns = image_columns(key)
    if key and not columns:
        return key  # not a key: reported when it is read
    return msgspec.json.encode({SOURCE: str(table), **columns}).decode()


def of_one_table(scope: str, other: str) -> bool:
    """Return whether two scopes in a shared table belong to the same source table."""
    return scope.partition(_OF)[2] == other.partition(_OF)[2]
