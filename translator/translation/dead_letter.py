"""Store messages that could not be translated as dead letters, with the reason (docs/design.md §5)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from cdc_core.state_format import FORMAT, check_format
from translator.codecs.record import Headers, Record, record_size
from translator.errors import ErrorCode, quote
from translator.message import Message

_FIRST = "cdc-error-code"
"""The first of our headers. Headers before this one came with the message."""

_SIZE, _HASH = "cdc-body-bytes", "cdc-body-sha256"
_FORMAT, _VERSION = "cdc-format", "cdc-version"
_NUMBERED = ("cdc-origin-partition", "cdc-origin-offset", "cdc-origin-timestamp")


class DeadLetter(Struct, frozen=True):
    """A message that could not be translated. `reason` states where the problem is, what was found and what was
    expected. It never includes row data.
    """

    code: ErrorCode
    reason: str
    without_message: bool = False
    """True if some of the source's columns are masked. Unless the message was translated, nobody knows where the values
    of these columns are.
    """


def dead_letter_record(
    message: Message, dead: DeadLetter, source: str, version: str, max_bytes: int, output: str | None = None
) -> Record:
    """Return the record for a dead letter: original key, value and headers, followed by our headers.

    `output` is the topic of a projection if the message is missing only from that projection. If the value does not
    fit, its SHA-256 and size replace it. If the record still does not fit, the key and the original headers are
    dropped, too. The original message remains in its raw topic. If masks are the reason for leaving a message out, only
    its size is stored. With its hash, anyone who knows the rest of the message could find a masked value by trial and
    error.
    """
    ours: Headers = [
        (_FIRST, dead.code.encode()),
        ("cdc-error-message", dead.reason.encode()),
        ("cdc-error-source", source.encode()),
        ("cdc-origin-topic", message.topic.encode()),
        ("cdc-origin-topic-id", message.topic_id.encode()),
        ("cdc-origin-partition", b"%d" % message.partition),
        ("cdc-origin-offset", b"%d" % message.offset),
        ("cdc-origin-timestamp", b"%d" % message.timestamp_ms),
        (_VERSION, version.encode()),
        (_FORMAT, b"%d" % FORMAT),
    ]
    if output is not None:
        ours.append(("cdc-error-output", output.encode()))
    body = message.value or b""
    size: Headers = [(_SIZE, b"%d" % len(body))]
    if dead.without_message:
        return Record(None, None, [*ours, *size])
    whole = Record(message.key, message.value, [*message.headers, *ours])
    if record_size(whole) <= max_bytes:
        return whole
    stand_in: Headers = [(_HASH, hashlib.sha256(body).hexdigest().encode()), *size]
    without_value = Record(message.key, None, [*message.headers, *ours, *stand_in])
    return without_value if record_size(without_value) <= max_bytes else Record(None, None, [*ours, *stand_in])


class Letter(Struct, frozen=True):
    """A dead letter that was read back: the original message, and the facts that were recorded about it."""

    message: Message
    """The message's `topic_id` is `-` if the dead letter does not contain a topic id."""
    code: str
    """The code from the release that wrote the dead letter. This release may not know that code."""
    reason: str
    source: str
    version: str
    output: str | None
    """The projection, if the message is missing only from that projection."""
    body_bytes: int | None
    """The size of a value that is not in the dead letter. The key and headers may also be missing."""
    ours: Headers
    """The headers that a dead letter adds."""

    @property
    def is_left_out(self) -> bool:
        """Return whether the message was left out because some columns of its source are masked."""
        return self.body_bytes is not None and _HASH not in {name for name, _ in self.ours}

    def reason_without_values(self, *, masked: bool) -> str | None:
        """Return the reason. Return None if the dead letter is older than the masks, and may contain a masked value.

        Args:
            masked: columns of the source are masked.
        """
        return None if masked and not self.is_left_out else self.reason


def read_dead_letter(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> Letter | None:
    """Parse a record from `dead_letter_record`. Returns None for a record that the translator did not write.

    A message may already contain our headers, because it was a dead letter before. The last of these headers belong to
    this dead letter.

    Raises:
        FatalError: the dead letter has the format of a later release.
    """
    begin = max((place for place, (name, _) in enumerate(headers) if name == _FIRST), default=None)
    if begin is None:
        return None
    ours = {name: (value or b"").decode("utf-8", "replace") for name, value in headers[begin:]}
    try:
        partition, offset, timestamp = (int(ours[name]) for name in _NUMBERED)
        size = ours.get(_SIZE)
        letter = Letter(
            message=Message(
                ours["cdc-origin-topic"],
                partition,
                offset,
                timestamp,
                key,
                value,
                tuple(headers[:begin]),
                ours.get("cdc-origin-topic-id", "-"),
            ),
            code=ours[_FIRST],
            reason=ours["cdc-error-message"],
            source=ours["cdc-error-source"],
            version=ours[_VERSION],
            output=ours.get("cdc-error-output"),
            body_bytes=None if size is None else int(size),
            ours=list(headers[begin:]),
        )
    except (KeyError, ValueError):
        return None
    place = f"topic {quote(letter.message.topic, 249)}, partition {partition}, offset {offset}"
    check_format(ours.get(_FORMAT), f"the dead letter of {place}", letter.version)
    return letter
