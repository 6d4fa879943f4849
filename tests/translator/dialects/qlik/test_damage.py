"""Damaged messages of every layout give an outcome or a dead letter without row data or library messages.

`QLIK_MUTATIONS=100000 python -m pytest tests/translator/dialects/qlik/test_damage.py` runs that many of each layout.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.case import CASES, opened
from tests.translator.dialects.qlik import avro, messages
from tests.translator.dialects.qlik.avro import body, data_schema, framed, key_schema, record_of, written
from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare
from translator.codecs.avro import AvroCodec
from translator.dialects.qlik import Qlik
from translator.message import Learned, Limits, Message
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator

MUTATIONS = int(os.environ.get("QLIK_MUTATIONS", "1000"))
SECRET = "s3cr3t-0f-4-r0w"

TOLD: dict[str, dict[str, Any]] = {
    "id": {"type": "INT4", "primaryKeyPosition": 1},
    "n": {"type": "NUMERIC", "precision": 10, "scale": 2},
    "at": {"type": "DATETIME"},
    "raw": {"type": "BYTES"},
    "f": {"type": "REAL4"},
    "text": {},
}
KINDS: dict[str, Any] = {
    "id": "int",
    "n": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "raw": "bytes",
    "f": "float",
    "text": "string",
}
PLAIN = {**KINDS, "n": "bytes", "at": "long"}
SCHEMA, KEY = data_schema(KINDS, avro.NAMESPACE), key_schema({"id": "int"})
WRITER = data_schema(PLAIN, avro.NAMESPACE)

ROW = {"id": 1, "n": "0.50", "at": "2023-01-01T00:00:00", "raw": "00", "f": 1.5, "text": SECRET}
OLD = {**ROW, "text": f"old {SECRET}"}
AVRO_ROW = {**ROW, "n": b"\x32", "at": 1_672_531_200_000_000, "raw": b"\0"}
AVRO_OLD = {**AVRO_ROW, "text": f"old {SECRET}"}
MASKS: dict[str, Any] = {"changeMask": "20", "columnMask": "3F"}
AVRO_MASKS: dict[str, Any] = {"changeMask": b"\x20", "columnMask": b"\x3f"}

OPERATIONS: Mapping[str, tuple[bool, bool]] = {  # masks, before image
    "REFRESH": (False, False),
    "INSERT": (True, False),
    "UPDATE": (True, True),
    "DELETE": (True, False),
}


def _json(operation: str, masks: bool, before: bool) -> dict[str, Any]:
    return bare(operation, ROW, OLD if before else None, **(MASKS if masks else {}))


def _avro(operation: str, masks: bool, before: bool) -> bytes:
    told = body(operation, AVRO_ROW, AVRO_OLD if before else None, **(AVRO_MASKS if masks else {}))
    return written(WRITER, told)


def _flattened(operation: str, masks: bool, before: bool) -> dict[str, Any]:
    plain = _json(operation, masks, before)
    headers = {f"headers_{name}": told for name, told in plain["headers"].items()}
    return {"message": {"data": plain["data"], "beforeData": plain["beforeData"], **headers}}


def _all(make: Callable[..., Any]) -> list[bytes]:
    values = [make(operation, *shape) for operation, shape in OPERATIONS.items()]
    return [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]


VALUES: Mapping[str, list[bytes]] = {
    "V1": _all(lambda *shape: messages.enveloped(_json(*shape), SCHEMA_ID)),
    "V2": _all(_json),
    "V3": _all(_flattened),
    "V4": _all(lambda *shape: avro.enveloped(_avro(*shape))),
    "V4 with its schema": _all(lambda *shape: avro.enveloped(_avro(*shape), schema=SCHEMA)),
    "V5": _all(lambda *shape: framed(5, _avro(*shape))),
    "metadata": [json.dumps(messages.metadata(TOLD)).encode()],
    "metadata in Avro": [avro.metadata(TOLD, SCHEMA)],
}
"""Each layout, with each operation."""


def _reader() -> Qlik:
    """Return a dialect that knows the metadata and schemas, so that damage beyond them is reached."""
    known: dict[str, object] = {}
    reader = messages.dialect(known)
    learned = reader.decode(record_of(VALUES["metadata in Avro"][0]))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    for number, schema in ((5, SCHEMA), (6, KEY)):
        known[f"registry/{number}"] = reader.learn(f"registry/{number}", json.dumps(schema).encode())
    return reader


READER = _reader()
TRANSLATOR = Translator("src", READER, Limits())
CODEC = AvroCodec()
KEYS = [None, b'{"id": 1}', framed(6, written(KEY, {"id": 1})), SECRET.encode()]

_OF_A_LIBRARY = re.compile(r"\w(?:Error|Exception|Warning)\b|Traceback|0x[0-9a-f]{6}|<class|fastavro|msgspec")


def check(message: Message) -> str:
    """Return what became of a message. Fail for our bugs and for forbidden content in a reason."""
    result = TRANSLATOR.translate(message)
    if isinstance(result, Events):
        encoded = TRANSLATOR.encode(CODEC, message, result)
        if not isinstance(encoded, DeadLetter):
            return "translated"
        result = encoded
    if isinstance(result, Learned):
        READER.learn(result.key, result.document)
        return "learned"
    if isinstance(result, DeadLetter):
        assert "INTERNAL" != result.code, (result.reason, message)
        assert SECRET not in result.reason
        assert not _OF_A_LIBRARY.search(result.reason), result.reason
        return "dead"
    return type(result).__name__.lower()


@pytest.mark.requirement("qlik.test_inputs.1")
def test_the_values_are_valid() -> None:
    """The undamaged messages are translated or learned."""
    for layout, values in VALUES.items():
        expected = "learned" if "metadata" in layout else "translated"
        assert {expected} == {check(record_of(value, key)) for value in values for key in KEYS}


def mutated(value: bytes, others: list[bytes], random: Random) -> bytes:
    """Make one to four changes: bytes changed, removed, added, moved, or taken from another message."""
    raw = bytearray(value)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(raw) + 1)
        end = min(at + random.choice((1, 1, 1, 2, 8, 64)), len(raw))
        how = random.randrange(6)
        if how == 0:
            raw[at:end] = random.randbytes(end - at)
        elif how == 1:
            del raw[at:end]
        elif how == 2:
            raw[at:at] = random.randbytes(random.choice((1, 2, 8)))
        elif how == 3:
            raw[at:end] = bytes([random.choice(_EDGES)]) * (end - at)
        elif how == 4:
            raw[at:at] = raw[at:end] * random.choice((1, 1, 20))
        else:
            other = random.choice(others)
            start = random.randrange(len(other))
            raw[at:end] = other[start : start + end - at]
    return bytes(raw)


_EDGES = (0, 1, 2, 3, 0x20, 0x22, 0x2C, 0x30, 0x5B, 0x5D, 0x7B, 0x7D, 0x7F, 0x80, 0xFF)


@pytest.mark.requirement("qlik.test_inputs.3")
@pytest.mark.parametrize("layout", VALUES)
def test_seeded_mutations(layout: str) -> None:
    """Any damaged message has an outcome, or is a dead letter with place and reason."""
    random, values = Random(f"qlik {layout}"), VALUES[layout]
    others = [value for listed in VALUES.values() for value in listed]
    seen = set()
    for _ in range(MUTATIONS):
        key = random.choice(KEYS)
        if key is not None and random.random() < 0.2:
            key = mutated(key, KEYS[1:], random)  # type: ignore[arg-type]
        seen.add(check(record_of(mutated(random.choice(values), others, random), key)))
    assert "dead" in seen


@pytest.mark.requirement("qlik.test_inputs.3")
def test_mutated_schemas() -> None:
    """The schema in a message can be damaged too."""
    random, text = Random("schemas"), json.dumps(SCHEMA).encode()
    inner = _avro("UPDATE", True, True)
    for _ in range(MUTATIONS):
        schema = mutated(text, [text], random).decode("latin-1")
        check(record_of(avro.enveloped(inner, schema_id=random.choice((None, SCHEMA_ID)), schema=schema)))


AVRO_CASES = sorted(path.parent for path in (CASES / "qlik").glob("*/message.bin"))


@pytest.mark.requirement("qlik.test_inputs.3")
@pytest.mark.parametrize("case", AVRO_CASES, ids=lambda case: case.name)
def test_every_truncation_of_the_cases(case: Any) -> None:
    """A truncated message is a dead letter, or waits if it lost the part that it waits for."""
    dialect, message = opened(case)
    translator = Translator("src", dialect, Limits())
    for end in range(1, len(message.value or b"")):
        cut = msgspec.structs.replace(message, value=(message.value or b"")[:end])
        result = translator.translate(cut)
        assert isinstance(result, DeadLetter)
        assert "INTERNAL" != result.code


@pytest.mark.requirement("qlik.test_inputs.3")
@pytest.mark.parametrize("layout", VALUES)
def test_every_truncation(layout: str) -> None:
    """The same holds for each layout and operation."""
    for value in VALUES[layout]:
        for end in range(1, len(value)):
            assert "dead" == check(record_of(value[:end]))
