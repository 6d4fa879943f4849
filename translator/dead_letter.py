"""Dead letters: what could not be translated, kept with the reason (design section 5)."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from translator.codecs.record import Headers, Record, record_size
from translator.errors import ErrorCode
from translator.message import Message


class DeadLetter(Struct, frozen=True):
    """The message could not be translated. `reason` says where, what came and what was allowed; never row data."""

    code: ErrorCode
    reason: str


def dead_letter_record(
    message: Message, dead: DeadLetter, source: str, version: str, max_bytes: int, output: str | None = None
) -> Record:
    """The dead letter: original key, value and headers, plus ours.

    `output` is the topic of a projection when the message is missing only there.
    Where that does not fit, SHA-256 and size stand in for the value; where the rest does not fit either, key and
    original headers go too. The original lies at its origin.
    """
    ours: Headers = [
        ("cdc-error-code", dead.code.encode()),
        ("cdc-error-message", dead.reason.encode()),
        ("cdc-error-source", source.encode()),
        ("cdc-origin-topic", message.topic.encode()),
        ("cdc-origin-partition", b"%d" % message.partition),
        ("cdc-origin-offset", b"%d" % message.offset),
        ("cdc-origin-timestamp", b"%d" % message.timestamp_ms),
        ("cdc-version", version.encode()),
    ]
    if output is not None:
        ours.append(("cdc-error-output", output.encode()))
    whole = Record(message.key, message.value, [*message.headers, *ours])
    if record_size(whole) <= max_bytes:
        return whole
    body = message.value or b""
    stand_in: Headers = [
        ("cdc-body-sha256", hashlib.sha256(body).hexdigest().encode()),
        ("cdc-body-bytes", b"%d" % len(body)),
    ]
    without_value = Record(message.key, None, [*message.headers, *ours, *stand_in])
    return without_value if record_size(without_value) <= max_bytes else Record(None, None, [*ours, *stand_in])
