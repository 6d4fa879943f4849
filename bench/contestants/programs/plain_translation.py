"""Do the work of a peer for each message: parse the message, copy its parts into a Debezium-like object, and serialize
the object.

Nothing is checked or typed. This module runs in a peer's environment, so it imports nothing from this project.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

try:
    import orjson

    loads: Callable[[bytes], Any] = orjson.loads
    dumps: Callable[[Any], bytes] = partial(orjson.dumps, default=str)
except ImportError:
    import msgspec

    loads, dumps = msgspec.json.decode, msgspec.json.encode

Translate = Callable[[bytes], Iterator[tuple[str, bytes]]]

_CANAL = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_SHAREPLEX = {"ins": "c", "upd": "u", "del": "d"}


def load_job(path: str) -> dict[str, Any]:
    """Return the job that the runner assigned to a program."""
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return job


def translation(job: dict[str, Any]) -> Translate:
    """Return the translation function for a job's format."""
    return _TRANSLATIONS[job["format"]](job)


def _canal(job: dict[str, Any]) -> Translate:
    def translate(value: bytes) -> Iterator[tuple[str, bytes]]:
        message = loads(value)
        op = _CANAL.get(message["type"])
        if op is None or message["isDdl"]:
            return
        old = message["old"]
        source = {
            "connector": "mysql",
            "db": message["database"],
            "table": message["table"],
            "ts_ms": message["es"],
            "seq": message["id"],
        }
        for number, row in enumerate(message["data"]):
            before = {**row, **old[number]} if op == "u" and old else row if op == "d" else None
            after = None if op == "d" else row
            event = {"before": before, "after": after, "op": op, "ts_ms": message["ts"], "source": source}
            yield ".".join(row[name] for name in message["pkNames"]), dumps(event)

    return translate


def _shareplex(job: dict[str, Any]) -> Translate:
    key = job["key"]

    def translate(value: bytes) -> Iterator[tuple[str, bytes]]:
        message = loads(value)
        meta, data = message["meta"], message["data"]
        op = _SHAREPLEX[meta["op"]]
        before = message.get("key") if op == "u" else data if op == "d" else None
        after = None if op == "d" else data
        event = {"before": before, "after": after, "op": op, "ts": meta["time"], "source": {"table": meta["table"]}}
        yield str((before or data)[key]), dumps(event)

    return translate


def _qlik_event(message: dict[str, Any], table: str, key: str) -> tuple[str, bytes]:
    headers, data = message["headers"], message["data"]
    deletes = headers["operation"] == "DELETE"
    event = {
        "before": data if deletes else message["beforeData"],
        "after": None if deletes else data,
        "op": headers["operation"],
        "ts": headers["timestamp"],
        "source": {"table": table, "seq": headers["changeSequence"], "tx": headers["transactionId"]},
    }
    return str(data[key]), dumps(event)


def _qlik_json(job: dict[str, Any]) -> Translate:
    key, tables = job["key"], job["tables"]

    def translate(value: bytes) -> Iterator[tuple[str, bytes]]:
        envelope = loads(value)
        yield _qlik_event(envelope["message"], tables[envelope["messageSchemaId"]], key)

    return translate


def _qlik_avro(job: dict[str, Any]) -> Translate:
    import fastavro

    key, tables = job["key"], job["tables"]
    envelope_schema = fastavro.parse_schema(job["envelope_schema"])
    schema = fastavro.parse_schema(job["schema"])

    def translate(value: bytes) -> Iterator[tuple[str, bytes]]:
        envelope: Any = fastavro.schemaless_reader(io.BytesIO(value), envelope_schema, None)
        message: Any = fastavro.schemaless_reader(io.BytesIO(envelope["message"]), schema, None)
        del message["headers"]["changeMask"], message["headers"]["columnMask"]
        yield _qlik_event(message, tables[envelope["messageSchemaId"]], key)

    return translate


def _dts_avro(job: dict[str, Any]) -> Translate:
    import fastavro

    schema, key = fastavro.parse_schema(job["schema"]), job["key"]

    def row(names: list[str], image: Any) -> dict[str, Any] | None:
        return None if image is None else dict(zip(names, map(cell, image), strict=True))

    def cell(datum: Any) -> Any:
        if datum is None:
            return None
        value = datum.get("value", datum)
        return value.decode() if isinstance(value, bytes) else value

    def translate(value: bytes) -> Iterator[tuple[str, bytes]]:
        record: Any = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
        names = [field["name"] for field in record["fields"]]
        before, after = row(names, record["beforeImages"]), row(names, record["afterImages"])
        event = {
            "before": before,
            "after": after,
            "op": record["operation"],
            "ts": record["sourceTimestamp"],
            "source": {"table": record["objectName"], "seq": record["sourcePosition"]},
        }
        yield str((after or before or {})[key]), dumps(event)

    return translate


_TRANSLATIONS: dict[str, Callable[[dict[str, Any]], Translate]] = {
    "canal": _canal,
    "canal_dts": _canal,
    "shareplex": _shareplex,
    "qlik_json": _qlik_json,
    "qlik_avro": _qlik_avro,
    "dts_avro": _dts_avro,
}
