"""Several source tables in one table, where `tables.shared` says so (docs/sink-design.md, R16).

Their rows are told apart by a column of the key that names the source table, and so are their scopes: one partition of
a raw topic may bring events of many tables, and a truncate of one of them is none of the others.
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

# Stands for the source of a table that has several; no source has such a name.
SEVERAL = "*"

# Between a scope and the source table; a name of a topic or a task may hold it, so it counts in shared tables only.
_OF = "|"


def owner_of(table: TableId, pattern: TablePattern, rules: TableRules) -> TableId:
    """The one table that a source table is part of, or itself."""
    target = pattern.target(table)
    return TableId(SEVERAL, None, None, target) if rules.shares(target, str(table)) else table


def target_of(table: TableId, pattern: TablePattern) -> str:
    """The name in the lakehouse of what `owner_of` gives."""
    return table.table if table.source == SEVERAL else pattern.target(table)


def pooled(
    taken: Mapping[TableId | None, Intake], catalog: SchemaCatalog, pattern: TablePattern, rules: TableRules
) -> tuple[dict[TableId | None, Intake], SchemaCatalog]:
    """The events of tables by the one that they go to, in order, and a catalog that knows it by the schemas of all."""
    found: dict[TableId | None, Intake] = {}
    parts: dict[TableId, list[TableId]] = {}
    together: dict[TableId, list[Event]] = {}
    spelled: dict[str, TableId] = {}  # names that differ by case are one; the first counts
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
    """Tell whether two owners are one."""
    return table == other or (table.source == other.source == SEVERAL and table.table.lower() == other.table.lower())


def _marked(events: Iterable[Event], table: TableId) -> list[Event]:
    """The events with the table in their scope and their keys."""
    own = msgspec.json.encode(str(table)).decode()
    scopes: dict[str, str] = {}
    marked = []
    for event in events:
        scope = scopes.setdefault(event.scope, f"{event.scope}{_OF}{table}")
        key_old = None if event.key_old is None else _with_source(event.key_old, own)
        marked.append(msgspec.structs.replace(event, scope=scope, key=_with_source(event.key, own), key_old=key_old))
    return marked


def _with_source(key: str, source: str) -> str:
    """The key of a row among those of all tables; one that is not known stays so."""
    columns = image_columns(key)
    if key and not columns:
        return key  # no key: found when it is read
    return msgspec.json.encode({SOURCE: msgspec.Raw(source.encode()), **columns}).decode()


def of_one_table(scope: str, other: str) -> bool:
    """Tell whether two scopes of a shared table bring events of one source table."""
    return scope.partition(_OF)[2] == other.partition(_OF)[2]
