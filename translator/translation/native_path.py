"""The native path of one source: common messages to the records that `translate` and the codec would make of them.

What it does not take, the plain way translates; what it takes is compared with the plain way once in a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from types import NoneType
from typing import TypeAlias

import msgspec
from msgspec import Struct

from translator import _native
from translator._native.layout import (
    HasNativeRows,
    NativeGuard,
    NativeLayout,
    NativeReader,
    NativeRows,
    NativeTable,
    ProjectionForm,
    RecordForm,
    TakenMessage,
)
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.filtered import FilteredCodec
from translator.codecs.native_table import native_table
from translator.codecs.record import Record
from translator.message import Guarded, Message
from translator.translation.translate import Encoder, Events, Translator
from translator.values.scalar import Converter

SELF_CHECK_EVERY = 1_000
"""Of so many messages that are taken, one goes both ways: 0.05 us a message."""

DIFFERENCE = "difference"
"""The reason for every message of a source after its self-check found a difference."""

Taken: TypeAlias = TakenMessage | str
"""A message that was taken, or the reason why it was not."""


class PathDifference(Struct, frozen=True):
    """A message of which the two paths make different records.

    Args:
        native, plain: the SHA-256 of the records of one output, or the kind of result where the plain path has no
            records. Neither shows row data.
    """

    topic: str
    partition: int
    offset: int
    native: str
    plain: str


def _ignore(_: PathDifference) -> None:
    pass


class NativePath:
    """The native path of one source to all outputs.

    Args:
        codecs: of the outputs, the canonical topic first.
        reader: of the extension.
        report: called once, with the first difference that the self-check finds.
    """

    def __init__(
        self,
        translator: Translator,
        codecs: Sequence[Encoder],
        reader: NativeReader,
        report: Callable[[PathDifference], object] = _ignore,
    ) -> None:
        self._translator = translator
        self._codecs = codecs
        self._reader = reader
        self._report = report
        self._until_check = SELF_CHECK_EVERY
        self._is_off = False

    def take(self, messages: Sequence[Message]) -> Sequence[Taken]:
        """Return what became of each message of a run, which is of one partition.

        From the first difference on, nothing is taken: neither the run that shows it, nor any later one.
        """
        if not self._is_off:
            first = messages[0]
            taken = self._reader.take(first.topic, first.partition, first.topic_id, messages)
            self._until_check -= len(messages)
            difference = self._check(messages, taken) if self._until_check <= 0 else None
            if difference is None:
                return taken
            self._is_off = True
            self._report(difference)
        return [DIFFERENCE] * len(messages)

    def _check(self, messages: Sequence[Message], taken: Sequence[Taken]) -> PathDifference | None:
        for message, found in zip(messages, taken, strict=True):
            if not isinstance(found, str):
                self._until_check = SELF_CHECK_EVERY
                return self._compare(message, found.outputs)
        return None

    def _compare(self, message: Message, outputs: Sequence[Sequence[Record]]) -> PathDifference | None:
        result = self._translator.translate(message)
        for codec, records in zip(self._codecs, outputs, strict=True):
            plain = self._translator.encode(codec, message, result) if isinstance(result, Events) else result
            if plain != records:
                expected = _digest(plain) if isinstance(plain, list) else type(plain).__name__
                return PathDifference(message.topic, message.partition, message.offset, _digest(records), expected)
        return None


def native_path(
    translator: Translator,
    outputs: Sequence[tuple[Encoder, int]],
    report: Callable[[PathDifference], object] = _ignore,
) -> NativePath | str:
    """Return the native path of a source, or why there is none.

    Args:
        outputs: the codec of each, the canonical topic first, with the bytes that a record may have there.
        report: called once, with the first difference between the two paths.
    """
    absence = _native.absence()
    if absence is not None:
        return absence
    (output, max_bytes), *others = outputs
    canonical = output.whole if isinstance(output, FilteredCodec) else output
    if not isinstance(canonical, AvroCodec):
        return "the canonical topic is not Avro"
    projections = tuple(found for codec, size in others if (found := _projection(codec, size)) is not None)
    if len(projections) < len(others):
        return "a projection is not Debezium JSON"
    rows = _rows(translator)
    if isinstance(rows, str):
        return rows
    form = RecordForm(
        source=translator.source,
        header=canonical.header,
        max_record=max_bytes,
        projections=projections,
        record=Record,
        convert_cell=convert_cell,
        convert_bytes=convert_bytes,
        table=partial(_table, translator, output, projections),
    )
    return NativePath(translator, [codec for codec, _ in outputs], rows.open(form), report)


def _table(
    translator: Translator, output: Encoder, projections: Sequence[ProjectionForm], layout: NativeLayout
) -> NativeTable | None:
    """Return a table as the extension takes it.

    None is left to the plain way: what is masked, and a table that the canonical topic does not get.
    """
    masks = translator.masks
    if masks is not None and not masks.takes_natively(layout):
        return None
    if isinstance(output, FilteredCodec) and not output.takes(translator.source, layout.table):
        return None
    return native_table(translator.source, translator.dialect.name, projections, layout)


def _rows(translator: Translator) -> NativeRows | str:
    """Return the part of the dialect that the path asks, or why there is none."""
    dialect = translator.dialect
    if translator.native_order:
        return "order: native"
    if not isinstance(dialect, HasNativeRows):
        return f"dialect {dialect.name} has none"
    if isinstance(dialect, Guarded) and not isinstance(dialect.guard(), (NativeGuard, NoneType)):
        return "a check looks at every change"
    return dialect.native_rows() or "the options of the source leave all messages to the plain way"


def _projection(codec: Encoder, max_bytes: int) -> ProjectionForm | None:
    return codec.native(max_bytes) if isinstance(codec, (DebeziumCodec, FilteredCodec)) else None


def convert_cell(text: bytes, convert: Converter | None) -> bytes:
    """Return the canonical value, as JSON, of a cell that is sent as a scalar of JSON.

    Raises:
        Unrepresentable, Assumed: the row needs an issue or a note.
        ValueError: no text that UTF-8 can carry.
    """
    value = _decode(text)
    return _encode(value if convert is None else convert(value))


def convert_bytes(cell: bytes, convert: Converter) -> bytes:
    """Return the canonical value, as JSON, of a cell that its converter reads from the bytes that were sent.

    Raises:
        Unrepresentable, Assumed: the row needs an issue or a note.
        ValueError: the converter does not know such a cell.
    """
    return _encode(convert(cell))


def _digest(records: Sequence[Record]) -> str:
    found = hashlib.sha256()
    for record in records:
        for part in (record.key, record.value, *(value for _, value in record.headers)):
            found.update(part if isinstance(part, bytes) else str(part).encode())
    return found.hexdigest()


_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
