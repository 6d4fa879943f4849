"""Digests of the output bytes of each case: `python -m tests.translator.digests forward|backward`.

test_determinism.py runs this in separate processes. Cases with one configuration share a dialect object, so state left
by one message could affect the next. `backward` runs them in reverse order.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.translator.dialects.case import CASES, find_cases, opened
from translator.codecs import CODECS, Framing, build
from translator.codecs.registered import TableSchemas
from translator.message import Limits
from translator.translation.translate import Events, Translator

ORDERS: Mapping[str, slice] = {"forward": slice(None), "backward": slice(None, None, -1)}


def _id_of(subject: str, text: str) -> int:
    """Return a schema id like a registry that gives the same one regardless of earlier requests."""
    return int.from_bytes(hashlib.sha256(f"{subject} {text}".encode()).digest()[:4], "big") >> 1


FRAMING = Framing(tables=TableSchemas(_id_of, lambda event: "topic"))


def digests(order: str) -> list[str]:
    """Return a sorted line for each case and output."""
    translators: dict[bytes, Translator] = {}
    lines = []
    for case in find_cases()[ORDERS[order]]:
        dialect, message = opened(case)
        translator = translators.setdefault(_configuration(case), Translator("source", dialect, Limits()))
        result = translator.translate(message)
        outputs: dict[str, Any] = {"result": result}
        if isinstance(result, Events):
            outputs |= {name: translator.encode(build(name, {}, FRAMING), message, result) for name in CODECS}
            halved = build("avro", {"key_change": "two_events"})
            outputs["avro:two_events"] = translator.encode(halved, message, result)
        lines += [f"{case.relative_to(CASES)} {name} {_digest(output)}" for name, output in outputs.items()]
    return sorted(lines)


def _configuration(case: Path) -> bytes:
    """Return the same value for cases with the same options, tables and metadata."""
    files = [case / "options.json", case / "tables.json", *sorted(case.glob("metadata*"))]
    return b"\n".join([case.parent.name.encode(), *(path.read_bytes() if path.exists() else b"" for path in files)])


def _digest(output: Any) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(output)).hexdigest()


if __name__ == "__main__":
    sys.stderr.write(f"{hash('seed')}\n")
    sys.stdout.write("".join(f"{line}\n" for line in digests(sys.argv[1])))
