"""Describe bytes that are not a record: their format, or the damage and its position."""

from __future__ import annotations

from collections.abc import Callable

from translator.dialects._avro_primitives import TRUNCATED, Damage, TooMany, read_long
from translator.dialects.dts_avro.scan import compile_scan
from translator.dialects.dts_avro.schema import LAST_FIELD_OF_V3, V2
from translator.errors import ErrorCode, MessageError


class Refusals:
    """Finds the text of the error for rejected bytes, because the reader stops at the first fault and does not report
    its position.
    """

    def __init__(self, max_items: int) -> None:
        self._scan = compile_scan(V2, max_items)

    def of(self, value: bytes) -> MessageError:
        """Return the error. Use this only if reading failed, because a valid record may start with the same bytes."""
        try:
            self._scan_whole(value)
        except TooMany as damage:
            return MessageError(ErrorCode.LIMIT_EXCEEDED, f"{damage.reason} (limits.columns)", path=damage.path)
        except Damage as damage:
            return self._other_format(value, damage)
        return MessageError(ErrorCode.MALFORMED_AVRO, "a string is not valid UTF-8")

    def _scan_whole(self, value: bytes) -> None:
        """Walk strictly over the bytes to find the fault and its position. Strings are not checked."""
        end = self._scan(value, 0)
        if end == len(value):
            return
        try:
            end = read_long(value, end)[1]
        except IndexError:
            # Either the last long is truncated, or a length points beyond the end.
            end = len(value) + 1
        except Damage as damage:
            damage.names.append(LAST_FIELD_OF_V3)
            raise
        if end > len(value):
            raise Damage(TRUNCATED)
        if end < len(value):
            raise Damage(f"the record is followed by {len(value) - end} unexpected bytes")

    def _other_format(self, value: bytes, damage: Damage) -> MessageError:
        for looks_like, name in _OTHER_FORMATS:
            if looks_like(value):
                return MessageError(ErrorCode.FRAMING, f"the value is not a DTS record but {name}")
        if value[:1] == b"\0" and self._is_record(value[_CONFLUENT_PREFIX:]):
            return MessageError(
                ErrorCode.FRAMING, "the value is a DTS record with a Confluent prefix, which DTS never writes"
            )
        return MessageError(
            ErrorCode.MALFORMED_AVRO, f"the value is not a DTS record: {damage.reason}", path=damage.path
        )

    def _is_record(self, value: bytes) -> bool:
        try:
            self._scan_whole(value)
        except Damage:
            return False
        return True


_CONFLUENT_PREFIX = 5


def _is_json(value: bytes) -> bool:
    text = value.strip()
    return text[:1] + text[-1:] in (b"{}", b"[]")


_OTHER_FORMATS: tuple[tuple[Callable[[bytes], bool], str], ...] = (
    (lambda value: value.startswith(b"Obj\x01"), "an Avro container file"),
    (lambda value: value.startswith(b"\xc3\x01"), "Avro single-object encoding"),
    (
        _is_json,
        (
            "JSON: the DTS task is configured to write Canal JSON or SharePlex JSON; set the source's dialect "
            "accordingly"
        ),
    ),
)
