"""Provide invalid input that the stream must survive. Each message is skipped or becomes a dead letter. None of them
stops the stream.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from dev.demo.shop import Shop, ShopChange
from dev.demo.writers import Raw
from dev.demo.writers.dts_avro import DtsAvroWriter


@dataclass(frozen=True)
class Bad:
    """A bad message and its expected outcome: the code of a dead letter, or None if it is skipped."""

    what: str
    message: Raw
    code: str | None


def bad_input(seed: int = 7) -> list[Bad]:
    """Return one bad message of each kind, for the topics in `dev.demo.sources`."""
    whole = _a_dts_record()
    insert = {"data": [{"id": "1"}], "database": "shop", "table": "orders", "type": "INSERT", "pkNames": ["id"]}
    canal, dts = "raw.canal", "raw.dts"
    return [
        Bad("null value", Raw(canal, 0, b"k", None), None),
        Bad("empty value", Raw(canal, 0, None, b""), None),
        Bad("random bytes", Raw(canal, 1, None, random.Random(seed).randbytes(64)), "MALFORMED_JSON"),
        Bad("truncated JSON", Raw(canal, 0, b"key", json.dumps(insert)[:-9].encode()), "MALFORMED_JSON"),
        Bad(
            "unknown operation", Raw(canal, 1, None, json.dumps(insert | {"type": "XX"}).encode()), "UNKNOWN_OPERATION"
        ),
        Bad("Flink's JSON", Raw("raw.shareplex", 0, None, b'{"data":{},"type":"insert"}'), "UNSUPPORTED_SHAPE"),
        Bad("empty value, Avro", Raw(dts, 0, None, b""), None),
        Bad("truncated Avro", Raw(dts, 0, b"key", whole[: len(whole) // 2]), "MALFORMED_AVRO"),
        Bad("random bytes, Avro", Raw(dts, 1, None, b"\xff" * 40), "MALFORMED_AVRO"),
        Bad("wrong magic", Raw("raw.qlik", 0, None, b'{"magic":"atMSh","type":"DT","message":{}}'), "INVALID_FIELD"),
    ]


def _a_dts_record() -> bytes:
    change: ShopChange = next(iter(Shop(0).history(1)))
    (message,) = DtsAvroWriter("unused").write(change)
    return message.value or b""
