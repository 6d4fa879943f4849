"""Group the records of a task by table. Tell apart row events that can be folded, other records, and invalid
records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.statement_notes import statement_notes
from cdc_core.table_id import TableId
from spark_sink.errors import Reason
from spark_sink.events import event_columns
from spark_sink.events.arrow_values import column, counting, image
from spark_sink.events.event_columns import EventColumns, without_schema
from spark_sink.events.quarantine import Rejected
from spark_sink.events.wire_format import PLAIN_FIELDS
from spark_sink.model.event import (
    APART,
    GAP,
    STATEMENT,
    Event,
    Key,
    StatementImage,
)
from spark_sink.schema.evolution import TableShape

OPERATIONS = frozenset({"r", "c", "u", "d", "t"})
NEED_AFTER = frozenset({"r", "c", "u"})

# Invalid events that may have changed a row.
LEAVE_GAPS = frozenset({Reason.OPERATION_UNKNOWN, Reason.IMAGE_MISSING})


# The counter for events that belong to excluded tables. Ignored kinds have their own counters.
EXCLUDED = "excluded"


@dataclass(slots=True)
class Intake:
    """The records of one table: events in canonical order, records that cannot become events, and the number of all
    other records by kind.

    `statements` counts statement notes. `wide` has the notes of statements that name no table, each as source, database
    and note.
    """

    events: Sequence[Event] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)
    wide: list[tuple[str, str | None, str]] = field(default_factory=list)


def routes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Group the records by route. The records arrive in Arrow batches, sorted by route. A batch may end anywhere."""
    held: list[pa.RecordBatch] = []
    current: str | None = None
    for batch in batches:
        runs = pc.run_end_encode(batch.column("route"))
        start = 0
        for route, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            if held and route != current:
                yield pa.Table.from_batches(held)
                held = []
            current = route
            held.append(batch.slice(start, end - start))
            start = end
    if held:
        yield pa.Table.from_batches(held)


def intake(records: pa.Table) -> dict[TableId | None, Intake]:
    """Group one route's records by source table. Records without a table have the key None.

    Usually, all records are valid row events for one table. In this case, the parts that the records share are checked
    once, not per event, and the events stay in columns. For a few records, columns cost more than events.
    """
    table = _one_table(records) if len(records) > event_columns.FEW else None
    return plain_intake(records) if table is None else {table: Intake(_sound(records))}


def plain_intake(records: pa.Table) -> dict[TableId | None, Intake]:
    """Group records of any kind, one by one. The result is the same as that of `intake`, and test_grouping.py compares
    the two.
    """
    tables: dict[TableId | None, Intake] = {}
    events: dict[TableId | None, list[Event]] = {}
    columns = _fields(records)
    for index, values in enumerate(zip(*(columns[name].to_pylist() for name in _Sent._fields), strict=True)):
        sent = _Sent._make(values)
        table_id = TableId(sent.source, sent.db, sent.schema, sent.table) if sent.table is not None else None
        into = tables.get(table_id)
        if into is None:
            into = tables[table_id] = Intake(events.setdefault(table_id, []))
        if sent.kind is not None and sent.kind != "row":
            image = _statement(sent)
            if image is None:
                into.ignored[sent.kind] += 1
                continue
            words = dict.fromkeys(note.word for note in statement_notes(image.notes))
            if table_id is None:
                into.wide += [(sent.source, sent.db, word) for word in words]
                continue
            into.statements.update(words.keys())
            sent = sent._replace(op=STATEMENT, key=None, key_old=None, after=msgspec.json.encode(image))
            events[table_id].append(sent.event(index))
            continue
        wrong = _wrong(sent.kind, sent.op, sent.table, sent.after, moved=sent.key_old is not None)
        if wrong is not None:
            into.rejected.append(Rejected(index, *wrong))
            if sent.key is None or wrong[0] not in LEAVE_GAPS:
                continue
            sent = sent._replace(op=GAP, after=None, schema_id=None)
        events[table_id].append(sent.event(index))
    return tables


class _Sent(NamedTuple):
    """The fields in one record, named like the columns in `_fields`."""

    kind: str | None
    op: Any
    source: str
    db: str | None
    schema: str | None
    table: Any
    pos: Any
    pos_scope: Any
    key: str | None
    key_old: str | None
    after: Any
    after_state: str | None
    schema_id: str | None
    withholds: Any
    notes: str | None
    ts: Any
    committed: Any
    tx: str | None

    def event(self, index: int) -> Event:
        """Return the record as an event, with its index in the batch."""
        full = self.after_state == "full"
        return Event(
            *(index, self.op, self.key or "", self.key_old, self.pos_scope, self.pos),
            *(self.after, full, self.withholds, self.schema_id, self.ts, self.committed),
            self.tx,
        )


def _statement(sent: _Sent) -> StatementImage | None:
    """Return the statement in a record, or None if it changes no existing row."""
    if sent.kind != "schema" or sent.notes is None:
        return None
    notes = _NOTES.decode(sent.notes)
    if not statement_notes(notes):
        return None
    return StatementImage(tuple(notes), None if sent.after is None else bytes(sent.after).decode())


_NOTES = msgspec.json.Decoder(list[str])


def _one_table(records: pa.Table) -> TableId | None:
    """Return the table if all records are valid events for this table, and None otherwise."""
    distinct = [pc.unique(records.column(name)) for name in ("kind", "source", "db", "schema", "table")]
    if any(len(values) != 1 for values in distinct):
        return None
    kind, source, db, schema, table = (values[0].as_py() for values in distinct)
    cases = records.select(["op"]).append_column("bare", pc.is_null(records.column("after")))
    cases = cases.append_column("moved", pc.is_valid(records.column("key_old")))
    if any(
        _wrong(kind, case["op"], table, None if case["bare"] else b"", moved=case["moved"]) is not None
        for case in cases.group_by(["op", "bare", "moved"], use_threads=False).aggregate([]).to_pylist()
    ):
        return None
    return TableId(source, db, schema, table) if kind == "row" else None


def _sound(records: pa.Table) -> EventColumns:
    """Return one table's valid records as events."""
    columns = _fields(records)
    columns["index"] = pa.chunked_array([counting(len(records))])
    columns["key"] = columns["key"].fill_null("")
    columns["scope"] = columns["pos_scope"]
    columns["full"] = pc.fill_null(pc.equal(columns["after_state"], "full"), False)
    return EventColumns(pa.table({name: columns[name] for name in Event.__struct_fields__}))


def _fields(records: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns that make up an event, by name."""
    fields = {name: records.column(name) for name in (*PLAIN_FIELDS, "withholds", "notes", "ts", "committed", "tx")}
    return fields | {"after": fields["after"].cast(pa.binary())}


def _wrong(
    kind: str | None, op: str | None, table: str | None, after: bytes | None, *, moved: bool
) -> tuple[Reason, str] | None:
    if kind is None:
        return Reason.UNDECODABLE, "the record is not an Avro event with envelope version 1"
    if table is None:
        return Reason.TABLE_UNKNOWN, "the row event has no table"
    if op not in OPERATIONS:
        return Reason.OPERATION_UNKNOWN, f"operation {op!r}"
    if after is None and op in NEED_AFTER:
        return Reason.IMAGE_MISSING, f"operation {op} has no after image"
    if moved and op != "u":
        return Reason.OPERATION_UNKNOWN, f"operation {op} has key_old, but only an update can change a key"
    return None


def key_columns(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the key columns from the first event with a key, in key order."""
    # Read the events one by one, because the first event usually has a key.
    for event in (events[place] for place in range(len(events))):
        if event.op not in APART:
            try:
                return tuple(image(event.key))
            except ValueError:
                continue
    return ()


def named_columns(events: Sequence[Event]) -> list[str]:
    """Return the columns in events without a schema, in order of appearance."""
    names: dict[str, None] = {}
    for event in without_schema(events):
        try:
            names.update(dict.fromkeys(image(event.after or b"")))
        except ValueError:
            continue  # quarantined when its values are read
    return list(names)


def typed_keys(events: Sequence[Event], shape: TableShape) -> tuple[dict[str, Key], dict[str, tuple[Reason, str]]]:
    """Return the typed key for each valid key text, and the error for each invalid one."""
    texts = dict.fromkeys([event.key for event in events])
    texts.update(dict.fromkeys([event.key_old for event in events if event.key_old is not None]))
    return typed_key_texts(texts, shape)


def typed_key_texts(texts: Iterable[str], shape: TableShape) -> tuple[dict[str, Key], dict[str, tuple[Reason, str]]]:
    """Return the typed key for each valid text, and the error for each invalid one."""
    wrong: dict[str, tuple[Reason, str]] = {}
    raw: dict[str, tuple[object, ...]] = {}
    names = shape.key_sent_as
    for text in texts:
        try:
            values = image(text)
        except ValueError:
            wrong[text] = Reason.KEY_INVALID, "the key is not a JSON object"
            continue
        key = tuple(map(values.get, names))
        if len(values) == len(names) and None not in key:
            raw[text] = key
        elif values.keys() != set(names):
            wrong[text] = (
                Reason.KEY_DIFFERS,
                f"the event's key is ({', '.join(values)}), but the table's key is ({', '.join(names)})",
            )
        else:
            wrong[text] = Reason.KEY_UNKNOWN, "a key column is null"
    types = [shape.types[name] for name in shape.key]
    try:
        return _typed(raw, types), wrong
    except ValueError:
        return _typed_one_by_one(raw, types, wrong), wrong


def _typed(raw: dict[str, tuple[object, ...]], types: Sequence[str]) -> dict[str, Key]:
    columns = [_comparable(column([values[i] for values in raw.values()], sql)) for i, sql in enumerate(types)]
    return dict(zip(raw, zip(*columns, strict=True), strict=True))


def _comparable(array: pa.Array) -> list[object]:
    """Normalize key values, so that each key has a single representation. Tables and Python do not agree about NaN and
    the sign of zero.

    Raises:
        ValueError: a value is NaN.
    """
    if not pa.types.is_floating(array.type):
        return list(array.to_pylist())
    values = array.to_pylist()
    if any(value != value for value in values):
        raise ValueError("NaN is not a valid key")
    return [value + 0.0 for value in values]


def _typed_one_by_one(
    raw: dict[str, tuple[object, ...]], types: Sequence[str], wrong: dict[str, tuple[Reason, str]]
) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for text, values in raw.items():
        try:
            keys.update(_typed({text: values}, types))
        except ValueError:
            wrong[text] = Reason.KEY_INVALID, "a key value does not fit its column"
    return keys
