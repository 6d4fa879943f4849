"""Statements that change existing rows. Each statement is converted to a truncate, a refusal, or a patch for every
existing row.

A patch is an update at the statement's position. Positions therefore decide which rows are older than the statement,
and a replay changes nothing. A history gets a version for each current row, and no table format needs special
treatment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cdc_core.envelope import Column, TableSchema
from cdc_core.table_id import TableId
from spark_sink.apply.history import NO_VALUES, patch_versions
from spark_sink.apply.mirror import changes
from spark_sink.errors import Reason, Refused
from spark_sink.events.arrow_values import fits
from spark_sink.events.envelope_fields import image_columns
from spark_sink.events.images import ImageReader
from spark_sink.model.event import REFUSAL, STATEMENT, Event, Key, StatementImage
from spark_sink.model.fold import fold
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import Plan, TableShape
from spark_sink.schema.statement_rules import CONCERN_NO_ROWS, StatementRules, answer_to
from spark_sink.schema.table_spec import SOURCE
from spark_sink.tables.changes import Marker
from spark_sink.tables.protocols import HistoryTable, MirrorTable


class Answered(NamedTuple):
    """The result of replacing the statements in a table's events.

    It contains the events and the schemas for columns that statements fill. It also counts the notes after which the
    table differs from its source.
    """

    events: Sequence[Event]
    schemas: Sequence[TableSchema]
    unaccounted: Counter[str]


def answered(
    events: Sequence[Event], table: TableId, catalog: SchemaCatalog, rules: StatementRules, *, replayed: bool
) -> Answered:
    """Replace each statement with its result.

    Args:
        replayed: the events were parked until the operator resumed the table, so the reason for parking no longer
            applies.
    """
    found: list[Event] = []
    schemas: dict[str, TableSchema] = {}
    unaccounted: Counter[str] = Counter()
    known = catalog.known(table)
    for event in events:
        if event.op != STATEMENT:
            found.append(event)
            continue
        sent = msgspec.json.decode(event.after or b"", type=StatementImage)
        image = image_columns(sent.after)
        answer = answer_to(sent.notes, image.keys(), rules, known)
        unaccounted += answer.unaccounted
        bare = msgspec.structs.replace(event, after=None, schema_id=None, withholds=False)
        if answer.parks is not None and not replayed:
            detail = _detail(answer.parks, answer.unaccounted, event)
            always = not CONCERN_NO_ROWS.isdisjoint(answer.unaccounted)
            after = msgspec.json.encode((answer.parks.value, detail, always))
            found.append(msgspec.structs.replace(bare, op=REFUSAL, after=after))
        elif answer.empties:
            found.append(msgspec.structs.replace(bare, op="t"))
        elif answer.fills or answer.marks:
            schema = _schema_of(answer.fills, table, catalog.latest(table))
            schemas[schema.id] = schema
            after = msgspec.json.encode({name: image[name] for name in answer.fills})
            found.append(msgspec.structs.replace(bare, after=after, schema_id=schema.id, withholds=answer.marks))
    return Answered(found, list(schemas.values()), unaccounted)


def without_statements(events: Sequence[Event]) -> Sequence[Event]:
    """Return only the row events. A changelog is not a copy of rows, so changes without row events do not affect it."""
    return [event for event in events if event.op != STATEMENT]


def _detail(reason: Reason, words: Iterable[str], event: Event) -> str:
    what = "its source table was dropped" if reason is Reason.TABLE_DROPPED else "a statement changed its rows"
    named = ", ".join(sorted(words))
    return (
        f"{what} ({named}, at {event.scope} {event.pos}), but no row events were sent; reload the table from the "
        "source, then resume it"
    )


def _schema_of(fills: Mapping[str, str], table: TableId, latest: TableSchema | None) -> TableSchema:
    """Return the schema for a statement's image. If a column's type was already announced, that type is used."""
    types = {} if latest is None else latest.column_types
    columns = [Column(name, types.get(name, type_)) for name, type_ in fills.items()]
    return TableSchema.of(table.source, table.db, table.schema, table.table, columns, "statement")


def answer(event: Event, table: MirrorTable | HistoryTable, plan: Plan, marker: Marker, now: int) -> int:
    """Apply a statement to the existing rows, and return how many rows were written.

    Raises:
        Refused: the statement parks the table.
    """
    rows = table.current_keys() if isinstance(table, HistoryTable) else table.written().keys()
    keys = {str(number): key for number, key in enumerate(_of_source(event, rows, plan.shape))}
    if event.op == REFUSAL and (keys or refusal_without_rows([event])):
        raise _refusal(event)[0]
    if not keys or event.op == REFUSAL:
        return 0
    reader = ImageReader(plan)
    values = reader(event)
    unfit = {name for name, value in values.items() if not fits(value, plan.shape.types[name])}
    if unfit:
        # The value cannot be written, so the rows differ from those at the source.
        event = msgspec.structs.replace(event, after=NO_VALUES, withholds=True)
        values = {}
    if not values and not event.withholds:
        return 0
    if isinstance(table, HistoryTable):
        stored = table.versions(set(keys.values()), {event.scope: event.pos})
        current = {key: version for key, versions in stored.items() for version in versions if version.current}
        known = {key: (version.scope, version.ts) for key, version in current.items()}
        versions = patch_versions(_patches(event, event.ts, keys, known), keys, values, table, plan.shape)
        if versions.num_rows:
            table.write(versions, False, marker)
        return int(versions.num_rows)
    marks = table.marks(set(keys.values()))
    written = {key: (mark.scope, mark.committed) for key, mark in marks.items()}
    folded = fold(_patches(event, event.committed, keys, written), keys, marks, table.floors).rows
    if not folded:
        return 0
    table.write(changes(folded, marks, reader, plan.shape, table)._replace(at=now), marker)
    return len(folded)


def _patches(
    event: Event, at: int | None, keys: Mapping[str, Key], written: Mapping[Key, tuple[str, int | None]]
) -> list[Event]:
    """Return patches for the rows that are known to be older than the statement.

    Within a scope, positions decide. If another scope wrote a row, the commit time decides, because a statement and its
    table's rows may arrive in different partitions. If that time is unknown, the row is marked and keeps its values.

    Args:
        at: the time at which the statement ran.
        written: for each row, the scope that wrote it last, and the time of that write.
    """
    patch = msgspec.structs.replace(event, op="u", key_old=None, full=False)
    undecided = msgspec.structs.replace(patch, after=NO_VALUES, withholds=True)
    found = []
    for text, key in keys.items():
        scope, moment = written.get(key, (event.scope, None))
        if scope != event.scope and moment is not None and at is not None and moment > at:
            continue
        older = scope == event.scope or (moment is not None and at is not None and moment < at)
        found.append(msgspec.structs.replace(patch if older else undecided, key=text))
    return found


def refusal_without_rows(events: Iterable[Event]) -> Refused | None:
    """Return the first refusal that parks a table even if the table is empty or does not exist yet."""
    found = (_refusal(event) for event in events if event.op == REFUSAL)
    return next((refused for refused, always in found if always), None)


def _refusal(event: Event) -> tuple[Refused, bool]:
    reason, detail, always = msgspec.json.decode(event.after or b"", type=tuple[str, str, bool])
    return Refused(Reason(reason), detail), always


def _of_source(event: Event, rows: Iterable[Key], shape: TableShape) -> Iterable[Key]:
    """Return the rows from the statement's source table; all rows if the table is not shared."""
    if SOURCE not in shape.key or not event.key:
        return rows
    own = msgspec.json.decode(event.key, type=dict[str, str])[SOURCE]
    place = shape.key.index(SOURCE)
    return [key for key in rows if key[place] == own]
