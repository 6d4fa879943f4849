"""What the readers of a Debezium topic do with a record, restated in our own words from their code. None is imported.

Restated and tried manually on records of this codec: Flink 1.20 (`debezium-json`), Paimon 1.2 (its parser of Debezium
JSON), Iceberg 1.10 (`DebeziumTransform`), Kafka Connect 3.9 (`JsonConverter`). Restated only: RisingWave and
ClickHouse's sink.
"""

import json
from typing import Any, TypeAlias

from translator.codecs.record import Record

Image: TypeAlias = dict[str, Any]


class ReaderFailed(Exception):
    """The reader's job would stop here."""


def _fail_unless(condition: object, why: str) -> None:
    if not condition:
        raise ReaderFailed(why)


def root_of(record: Record, *, block: bool) -> Image:
    """Return the envelope in a value, with or without a schema around it."""
    assert record.value is not None
    document: Image = json.loads(record.value)
    envelope: Image = document["payload"] if block else document
    return envelope


def flink(record: Record, *, block: bool) -> list[tuple[str, Image]]:
    """Return rows with their kinds. Flink reads a column that a row lacks as NULL."""
    if record.value is None:
        return []
    root = root_of(record, block=block)
    _fail_unless(all(not isinstance(value, (dict, list)) for value in root["source"].values()), "source is no map")
    before, after = root["before"], root["after"]
    match root["op"]:
        case "c" | "r":
            return [("+I", after)]
        case "u":
            _fail_unless(before is not None, "before is null")
            return [("-U", before), ("+U", after)]
        case "d":
            _fail_unless(before is not None, "before is null")
            return [("-D", before)]
        case op:
            raise ReaderFailed(f"unknown op {op}")


def paimon(record: Record, *, block: bool) -> list[tuple[str, str, Image]]:
    """Return table, kind and row. An update deletes the new image overlaid with the old one, then inserts the new."""
    if record.value is None:
        return []
    root = root_of(record, block=block)
    _fail_unless("db" in root["source"] or "schema" in root["source"], "no database")
    before, after = root["before"], root["after"]
    match root["op"]:
        case "c" | "r":
            rows = [("+I", after)]
        case "u":
            _fail_unless(before is not None, "before is null")
            rows = [("-D", {**after, **before}), ("+I", after)]
        case "d":
            _fail_unless(before is not None, "before is null")
            rows = [("-D", before)]
        case op:
            raise ReaderFailed(f"unknown op {op}")
    if block:
        members = {field["field"]: field for field in json.loads(record.value)["schema"]["fields"]}
        declared = {field["field"] for field in members["after"]["fields"]}
        _fail_unless(all(row.keys() <= declared for _, row in rows), "a column that `after` does not declare")
    table = f"{root['source'].get('db')}.{root['source']['table']}"
    return [(table, kind, row) for kind, row in rows]


def risingwave(table: dict[str, Image], record: Record) -> None:
    """Apply a record to a table keyed by the message key. The old image of an update is ignored."""
    assert record.key is not None
    key = json.loads(record.key)
    name = json.dumps(key.get("payload", key))
    if record.value is None:
        table.pop(name, None)
        return
    document = json.loads(record.value)
    root = document.get("payload", document)
    match root["op"]:
        case "c" | "r" | "u":
            table[name] = root["after"]
        case "d":
            _fail_unless(root["before"] is not None, "before is null")
            table.pop(name, None)
        case op:
            raise ReaderFailed(f"unknown op {op}")


def clickhouse(record: Record) -> tuple[int, bool, Image] | None:
    """Return version, delete flag and row. This needs a schema whose name identifies an envelope."""
    if record.value is None:
        return None
    document = json.loads(record.value)
    _fail_unless(document["schema"]["name"].endswith(".Envelope"), "no envelope")
    root = document["payload"]
    version = root["source"]["lsn"]
    _fail_unless(isinstance(version, int) and -(2**63) <= version < 2**63, "lsn is no int64")
    if root["op"] == "t":
        return None
    deleted = root["op"] == "d"
    row = root["before"] if deleted else root["after"]
    _fail_unless(row is not None, "no row")
    return version, deleted, row


def iceberg(record: Record, *, block: bool) -> tuple[str, str, Image]:
    """Return operation, table and row. Everything but updates and deletes counts as an insert."""
    root = root_of(record, block=block)
    operation = {"u": "U", "d": "D"}.get(root["op"], "I")
    row = root["before"] if operation == "D" else root["after"]
    _fail_unless(row is not None, "no row")
    _fail_unless(isinstance(root["ts_ms"], int), "no ts_ms")
    source = root["source"]
    names = set(source)
    if block:
        assert record.value is not None
        members = {field["field"]: field for field in json.loads(record.value)["schema"]["fields"]}
        names = {field["field"] for field in members["source"]["fields"]}
    database = source.get("schema") if "schema" in names else source.get("db")
    _fail_unless(database is not None, "the database is null")
    return operation, f"{database}.{source['table']}", row


def connect(schema: Image, value: Any) -> Any:
    """Return a value as Connect's JSON converter does: strictly by its declaration."""
    if value is None:
        _fail_unless(schema["optional"], "null in a required field")
        return None
    match schema["type"]:
        case "struct":
            return {field["field"]: connect(field, value.get(field["field"])) for field in schema["fields"]}
        case "array":
            return [connect(schema["items"], item) for item in value]
        case "string" | "bytes":
            return value if isinstance(value, str) else None
        case "boolean":
            return value is True
        case "int8" | "int16" | "int32" | "int64" | "float" | "double":
            return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
        case other:
            raise ReaderFailed(f"unknown type {other}")
