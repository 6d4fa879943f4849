"""Bytes -> record: fastavro after a strict scan, and a name for what is no record at all."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from fastavro import schemaless_reader

from translator.dialects.dts_avro.scan import TRUNCATED, Damage, TooMany, compile_scan, read_long
from translator.dialects.dts_avro.schema import LAST_FIELD_OF_V3, V2, V3
from translator.errors import ErrorCode, MessageError
from translator.message import Limits

Record: TypeAlias = dict[str, Any]
_SCHEMAS = {"v2": V2, "v3": V3}


class RecordReader:
    """Reads records of any schema version. Keeps no state between messages: a decoder that was shared did harm
    (formats/dts_avro.md section 7).
    """

    def __init__(self, limits: Limits) -> None:
        self._scan = compile_scan(V2, limits.columns)

    def read(self, value: bytes) -> tuple[Record, str]:
        """The record and its version, `v2` or `v3`; version 1 cannot be told from 2.

        A record of version 2 is a prefix of one of version 3: the last long is there when bytes are left, and it must
        end where the value ends (section 11).

        Raises:
            MessageError: FRAMING when it is some other format, MALFORMED_AVRO, LIMIT_EXCEEDED.
        """
        try:
            version = self._version(value)
        except TooMany as damage:
            reason = f"{damage.reason} (limits.columns)"
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path=damage.path) from None
        except Damage as damage:
            raise self._refusal(value, damage) from None
        try:
            # Not `return_record_name`: that leaves an EmptyObject bare in the image whose schema spells it out.
            record = schemaless_reader(io.BytesIO(value), _SCHEMAS[version], None, return_named_type=True)
        except UnicodeDecodeError:
            raise MessageError(ErrorCode.MALFORMED_AVRO, "a string is not UTF-8") from None
        return cast(Record, record), version

    def _version(self, value: bytes) -> str:
        end = self._scan(value, 0)
        if end == len(value):
            return "v2"
        try:
            end = read_long(value, end)[1]
        except IndexError:
            # Either the last long is cut off, or a length led beyond the end.
            end = len(value) + 1
        except Damage as damage:
            damage.names.append(LAST_FIELD_OF_V3)
            raise
        if end > len(value):
            raise Damage(TRUNCATED)
        if end < len(value):
            raise Damage(f"{len(value) - end} bytes after the record")
        return "v3"

    def _refusal(self, value: bytes, damage: Damage) -> MessageError:
        """What the bytes are instead. Asked only after reading failed: these first bytes may start a record too."""
        for looks_like, name in _OTHER_FORMATS:
            if looks_like(value):
                return MessageError(ErrorCode.FRAMING, f"not a DTS record but {name}")
        if value[:1] == b"\0" and self._is_record(value[_CONFLUENT_PREFIX:]):
            return MessageError(ErrorCode.FRAMING, "a DTS record behind a Confluent prefix; DTS writes none")
        return MessageError(ErrorCode.MALFORMED_AVRO, f"not a DTS record: {damage.reason}", path=damage.path)

    def _is_record(self, value: bytes) -> bool:
        try:
            self._version(value)
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
    (_is_json, "JSON: the DTS task writes Canal JSON or SharePlex JSON; set the dialect of the source to match"),
)
