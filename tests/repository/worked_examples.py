"""Worked examples for the pages: real messages and the exact bytes that the product writes for them.

A page marks a place with `<!-- VIEW: CASE -->` and `<!-- end -->`. The case is a folder of the dialect tests. `python
-m tests.repository.worked_examples` rewrites all such places and docs/envelope-examples.jsonl.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import msgspec

from cdc_core.envelope import ChangeEvent, avro_schema
from tests.repository.pages import DOCS, page
from tests.translator.dialects.case import CASES, opened
from translator.codecs.avro import HEADER, AvroCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.message import Limits, Message
from translator.translation.translate import Events, Translator

VECTORS = DOCS / "envelope-examples.jsonl"
PAGES_OF_VECTORS = ("envelope-examples.md", "envelope-examples-more.md")
SOURCE = "shop"
PLACE = {"partition": 3, "offset": 42, "timestamp_ms": 1_700_000_000_500}
"""The position of the example messages. The topic is named after the dialect."""

MARKED = re.compile(
    r"(?P<begin>^<!-- (?P<view>[a-z ]+): (?P<case>[\w/]+) -->\n)(?P<text>.*?)(?P<end>^<!-- end -->$)", re.M | re.S
)
HEX_A_LINE = 16


def message_of(case: str) -> Message:
    """Return the message of a case, at the position of the examples."""
    _, message = opened(CASES / case)
    return msgspec.structs.replace(message, topic=f"raw.{Path(case).parent}", **PLACE)


def events_of(case: str) -> list[ChangeEvent]:
    """Return the events of that message."""
    dialect, _ = opened(CASES / case)
    result = Translator(SOURCE, dialect, Limits()).translate(message_of(case))
    assert isinstance(result, Events), f"{case}: {result}"
    return result.events


def _record(codec: AvroCodec | JsonCodec, event: ChangeEvent) -> Record:
    (record,) = codec.encode(event)
    return record


# -- views: Markdown for the marked places


def _value(case: str) -> str:
    """Return the raw value as text, or as hex if it is binary."""
    value = message_of(case).value or b""
    try:
        return f"```json\n{value.decode().rstrip()}\n```\n"
    except UnicodeDecodeError:
        return f"```\n{_hex_lines(value)}\n```\n"


def _event(case: str, *, nulls: bool) -> str:
    """Return the JSON form of each event, one field per line."""
    return "".join(f"```json\n{_laid_out(event, nulls=nulls)}\n```\n" for event in events_of(case))


def _laid_out(event: ChangeEvent, *, nulls: bool) -> str:
    fields = json.loads(_record(JsonCodec(), event).value or b"")
    lines = [
        f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
        if nulls or value is not None
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


def _avro(case: str) -> str:
    """Return the Avro value of the only event, field by field."""
    (event,) = events_of(case)
    parts = [("marker", HEADER[:2]), ("fingerprint of the schema", HEADER[2:]), *_fields(event)]
    return "```\n" + "\n".join(_annotated(content, name) for name, content in parts) + "\n```\n"


def _fields(event: ChangeEvent) -> list[tuple[str, bytes]]:
    values = msgspec.to_builtins(event)
    return [
        (f"{name}: {json.dumps(values[name], ensure_ascii=False)}", _datum(type_, values[name]))
        for name, type_ in ((field["name"], field["type"]) for field in _FIELDS)
    ]


_FIELDS = avro_schema(logical=False)["fields"]


def _datum(type_: Any, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(type_), value)
    return out.getvalue()


def _annotated(content: bytes, meaning: str) -> str:
    first, *others = _hex_lines(content).split("\n")
    return "\n".join([f"{first:<{3 * HEX_A_LINE}}| {meaning}", *others])


def _hex_lines(content: bytes) -> str:
    return "\n".join(content[i : i + HEX_A_LINE].hex(" ") for i in range(0, len(content), HEX_A_LINE))


def _kafka(case: str) -> str:
    """Return the key and headers of each record."""
    lines = []
    for event in events_of(case):
        record = _record(AvroCodec(), event)
        lines.append(f"key      {(record.key or b'').decode()}")
        lines += [f"header   {name}: {bytes(text or b'').decode()}" for name, text in _texts(record)]
    return "```\n" + "\n".join(lines) + "\n```\n"


def _texts(record: Record) -> list[tuple[str, bytes]]:
    return [(name, text if isinstance(text, bytes) else (text or "").encode()) for name, text in record.headers]


VIEWS: Mapping[str, Callable[[str], str]] = {
    "value": _value,
    "event": lambda case: _event(case, nulls=True),
    "event without nulls": lambda case: _event(case, nulls=False),
    "avro": _avro,
    "kafka": _kafka,
}


# -- pages and vectors


def rewritten(text: str) -> str:
    """Return a page with all marked places updated."""
    return MARKED.sub(lambda found: found["begin"] + VIEWS[found["view"]](found["case"]) + found["end"], text)


def cases_in(text: str) -> list[str]:
    """Return the cases that a page shows, in order."""
    return list(dict.fromkeys(found["case"] for found in MARKED.finditer(text)))


def examples() -> str:
    """Return the pages whose cases are in the machine-readable file."""
    return "".join(page(name) for name in PAGES_OF_VECTORS)


def vectors(cases: list[str]) -> bytes:
    """Return one line per event, as test data for readers in any language."""
    return b"".join(_vector(case, event) + b"\n" for case in cases for event in events_of(case))


def _vector(case: str, event: ChangeEvent) -> bytes:
    avro = _record(AvroCodec(), event)
    vector = {
        "case": case,
        "key": (avro.key or b"").decode(),
        "headers": {name: text.decode() for name, text in _texts(avro)},
        "avro_hex": (avro.value or b"").hex(),
        "json": msgspec.Raw(_record(JsonCodec(), event).value or b""),
    }
    return msgspec.json.encode(vector)


def main() -> None:
    """Overwrite the pages and the file. Review the changes in the diff."""
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
    VECTORS.write_bytes(vectors(cases_in(examples())))


if __name__ == "__main__":
    main()
