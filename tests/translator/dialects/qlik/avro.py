"""Build Qlik messages in Avro: schemas as Replicate writes them, both framings, and dialects that know them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from tests.translator.dialects.qlik.messages import SCHEMA_ID, dialect, message
from translator.dialects.qlik import Qlik
from translator.message import Changes, DeclaredTable, Learned, Message, RowChange

NAMESPACE = "com.attunity.queue.msg.chips-qa.TSTDTA.CINMAD"
COLUMNS: dict[str, Any] = {"id": "int", "name": "string"}

_HEADERS = [
    ("operation", {"type": "enum", "name": "operation", "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"]}),
    ("changeSequence", "string"),
    ("timestamp", "string"),
    ("streamPosition", "string"),
    ("transactionId", "string"),
    ("changeMask", ["null", "bytes"]),
    ("columnMask", ["null", "bytes"]),
    ("transactionEventCounter", ["null", "long"]),
    ("transactionLastEvent", ["null", "boolean"]),
]
HEADERS: dict[str, Any] = {
    "operation": "INSERT",
    "changeSequence": "20230911032325000000000000000000005",
    "timestamp": "2023-09-11T03:23:25.000",
    "streamPosition": "1",
    "transactionId": "60008",
    "changeMask": None,
    "columnMask": None,
    "transactionEventCounter": 1,
    "transactionLastEvent": True,
}
"""A change. `LOAD` is one of a full load."""
LOAD: dict[str, Any] = {
    "operation": "REFRESH",
    **dict.fromkeys(("changeSequence", "timestamp", "streamPosition", "transactionId"), ""),
    **dict.fromkeys(("changeMask", "columnMask", "transactionEventCounter", "transactionLastEvent")),
}


def record(name: str, fields: list[tuple[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a record schema."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields], **more}


def data_schema(columns: dict[str, Any], namespace: str | None = None, headers: int = 9) -> dict[str, Any]:
    """Return the schema of data records, with the registry's names if it has a namespace. In 2018, it had 7 headers."""
    row = record("Data", [(name, ["null", kind]) for name, kind in columns.items()])
    head = record("Headers", _HEADERS[:headers])
    if namespace:
        head["namespace"] = "com.attunity.queue.msg"
    fields = [("data", row), ("beforeData", ["null", "Data"]), ("headers", head)]
    return record("DataRecord", fields, **({"namespace": namespace} if namespace else {}))


def key_schema(columns: dict[str, Any], namespace: str = NAMESPACE) -> dict[str, Any]:
    """Return the schema of message keys."""
    return record("KeyRecord", list(columns.items()), namespace=namespace)


def written(schema: dict[str, Any], value: Any) -> bytes:
    """Return the bytes of a record."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def body(
    operation: str = "INSERT", data: dict[str, Any] | None = None, before: Any = None, **headers: Any
) -> dict[str, Any]:
    """Return a data record."""
    head = LOAD if operation == "REFRESH" else HEADERS
    return {"data": data or {}, "beforeData": before, "headers": {**head, "operation": operation, **headers}}


# -- the Replicate envelope

ENVELOPE = record(
    "MessageEnvelope",
    [
        ("magic", {"type": "fixed", "name": "Magic", "size": 5}),
        ("type", "string"),
        ("headers", ["null", {"type": "map", "values": "string"}]),
        ("messageSchemaId", ["null", "string"]),
        ("messageSchema", ["null", "string"]),
        ("message", "bytes"),
    ],
)


def enveloped(
    inner: bytes, schema_id: str | None = SCHEMA_ID, schema: Any = None, kind: str = "DT", headers: Any = None
) -> bytes:
    """Return bytes in the Replicate envelope."""
    text = json.dumps(schema) if isinstance(schema, (dict, list)) else schema
    return written(
        ENVELOPE,
        {
            "magic": b"atMSG",
            "type": kind,
            "headers": headers,
            "messageSchemaId": schema_id,
            "messageSchema": text,
            "message": inner,
        },
    )


def metadata_body(columns: dict[str, dict[str, Any]], schema: Any, **lineage: Any) -> dict[str, Any]:
    """Return the body of a metadata message. Columns without an ordinal get one in order."""
    rest = {"length": 0, "precision": 0, "scale": 0, "primaryKeyPosition": 0, "nullable": True}
    return {
        "schemaId": SCHEMA_ID,
        "lineage": {
            "server": "srv",
            "task": "tsk",
            "schema": "S",
            "table": "T",
            "tableVersion": 1,
            "timestamp": "2018-04-13T20:13:58.289",
            **lineage,
        },
        "tableStructure": {
            "tableColumns": {
                name: {"ordinal": n, "type": "STRING", **rest, **told}
                for n, (name, told) in enumerate(columns.items(), 1)
            }
        },
        "dataSchema": schema if isinstance(schema, str) else json.dumps(schema),
    }


def metadata_schema(columns: list[str]) -> dict[str, Any]:
    """Return the schema of metadata messages, with a record named after each column."""
    texts = [(name, "string") for name in ("server", "task", "schema", "table")]
    members = [("ordinal", "int"), ("type", "string"), *((n, "int") for n in ("length", "precision", "scale"))]
    members += [("primaryKeyPosition", "int"), ("nullable", "boolean")]
    listed = record("TableColumns", [(name, record(name, members)) for name in columns])
    return record(
        "MetadataMessage",
        [
            ("schemaId", "string"),
            ("lineage", record("Lineage", [*texts, ("tableVersion", "long"), ("timestamp", "string")])),
            ("tableStructure", record("TableStructure", [("tableColumns", listed)])),
            ("dataSchema", "string"),
        ],
    )


def metadata(columns: dict[str, dict[str, Any]], schema: Any, **lineage: Any) -> bytes:
    """Return a metadata message in Avro. Its writer needs other names for columns named like records."""
    renamed = [f"c{number}" for number in range(len(columns))]
    told = metadata_body(columns, schema, **lineage)
    listed = told["tableStructure"]["tableColumns"]
    plain = {**told, "tableStructure": {"tableColumns": dict(zip(renamed, listed.values(), strict=True))}}
    inner = written(metadata_schema(renamed), plain)
    return enveloped(inner, schema=metadata_schema(list(columns)), kind="MD")


def taught(columns: dict[str, dict[str, Any]], schema: Any, **options: Any) -> Qlik:
    """Return the dialect after a metadata message in Avro."""
    known: dict[str, object] = {}
    reader = dialect(known, **options)
    learned = reader.decode(message(metadata(columns, schema)))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    return reader


# -- Confluent's frame


def framed(number: int, inner: bytes) -> bytes:
    """Return bytes after a schema id."""
    return b"\0" + number.to_bytes(4, "big") + inner


def registered(
    schemas: dict[int, Any], tables: tuple[DeclaredTable, ...] = (), topics: Any = None, **options: Any
) -> Qlik:
    """Return the dialect with the schemas of a registry, and by default without a table by topic."""
    known: dict[str, object] = {}
    reader = dialect(known, tables, topics=topics, **options)
    for number, schema in schemas.items():
        text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
        known[f"registry/{number}"] = reader.learn(f"registry/{number}", text)
    return reader


def record_of(value: bytes, key: bytes | None = None, topic: str = "t") -> Message:
    """Return a Kafka record."""
    return Message(topic, 0, 0, 0, key, value)


def row(reader: Qlik, value: bytes, key: bytes | None = None) -> RowChange:
    """Return the only row change of a record."""
    outcome = reader.decode(record_of(value, key))
    assert isinstance(outcome, Changes)
    (only,) = outcome.changes
    assert isinstance(only, RowChange)
    return only
