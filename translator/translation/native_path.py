"""Run a source's native path. It turns common messages into the same records as `translate` and the codec do.

Messages that it does not support take the plain path. A sample of the results is compared with the plain path.
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
    EventClasses,
    HasNativeRows,
    NativeCodec,
    NativeGuard,
    NativeLayout,
    NativeReader,
    NativeRows,
    NativeTable,
    RecordForm,
    TakenMessage,
)
from translator.codecs.filtered import FilteredCodec
from translator.codecs.native_table import native_table
from translator.codecs.record import Record, record_size
from translator.message import Guarded, Message
from translator.translation.translate import Encoder, Events, Translator
from translator.values.scalar import Converter

SELF_CHECK_EVERY = 1_000
"""One in this many messages is translated on both paths. This adds 0.05 us per message."""

DIFFERENCE = "difference"
"""The reason given for every message from a source after the self-check has found a difference."""

Taken: TypeAlias = TakenMessage | str
"""A translated message, or the reason why it was not translated."""


class PathDifference(Struct, frozen=True):
    """A message for which the two paths gave different records.

    Args:
        native, plain: the SHA-256 of the records of one output, or the kind of result if the plain path has no records.
            Neither value reveals row data.
    """

    topic: str
    partition: int
    offset: int
    native: str
    plain: str


class PathOutput(Struct, frozen=True):
    """An output of the native path.

    Args:
        is_native: the extension writes its records. Otherwise, Python encodes the events.
    """

    codec: Encoder
    max_bytes: int
    is_native: bool


# Reasons that the extension also gives.
_REJECTED, _TOO_LARGE = "projection", "size"


def _ignore(_: PathDifference) -> None:
    pass


class NativePath:
    """The native path from one source to all outputs.

    Args:
        outputs: the outputs, with the canonical topic first.
        reader: the extension's reader.
        report: called once, with the first difference that the self-check finds.
    """

    def __init__(
        self,
        translator: Translator,
        outputs: Sequence[PathOutput],
        reader: NativeReader,
        report: Callable[[PathDifference], object] = _ignore,
    ) -> None:
        self._translator = translator
        self._codecs = [output.codec for output in outputs]
        self._in_python = [(number, output) for number, output in enumerate(outputs) if not output.is_native]
        self._reader = reader
        self._report = report
        self._until_check = SELF_CHECK_EVERY
        self._is_off = False

    def take(self, messages: Sequence[Message]) -> Sequence[Taken]:
        """Return the result for each message in a run from one partition.

        After the first difference, nothing more is translated, neither in this run nor in a later one.
        """
        if not self._is_off:
            first = messages[0]
            taken = self._reader.take(first.topic, first.partition, first.topic_id, messages)
            if self._in_python:
                taken = [one if isinstance(one, str) else self._with_all_outputs(one) for one in taken]
            self._until_check -= len(messages)
            difference = self._check(messages, taken) if self._until_check <= 0 else None
            if difference is None:
                return taken
            self._is_off = True
            self._report(difference)
        return [DIFFERENCE] * len(messages)

    def _with_all_outputs(self, taken: TakenMessage) -> Taken:
        """Add the records for the outputs that Python encodes.

        If one of these outputs does not accept an event, return the reason. The plain path then decides what happens.
        """
        events, order, schema = taken.events, self._translator.order, taken.operation.schema
        try:
            if order is not None:
                events = [*map(order.placed, events)]
            for number, output in self._in_python:
                records = [record for event in events for record in output.codec.encode(event, schema)]
                if any(record_size(record) > output.max_bytes for record in records):
                    return _TOO_LARGE
                taken.insert(number, records)
        except Exception:  # the plain path repeats the error and reports it
            return _REJECTED
        return taken

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
    """Return a source's native path, or the reason why the source has none.

    Args:
        outputs: each output's codec, with the canonical topic first, and its maximum record size in bytes.
        report: called once, with the first difference between the two paths.
    """
    absence = _native.absence()
    if absence is not None:
        return absence
    # The extension only writes positions that are based on arrival.
    by_arrival = translator.order is None
    natives = [_native_codec(codec) if by_arrival else None for codec, _ in outputs]
    written = [(codec, size) for codec, (_, size) in zip(natives, outputs, strict=True) if codec is not None]
    rows = _rows(translator)
    if isinstance(rows, str):
        return rows
    form = RecordForm(
        source=translator.source,
        events=None if all(natives) else EventClasses(),
        max_records=tuple(size for _, size in written),
        convert_cell=convert_cell,
        convert_bytes=convert_bytes,
        table=partial(_table, translator, outputs[0][0], [codec for codec, _ in written]),
    )
    found = [PathOutput(codec, size, bool(native)) for (codec, size), native in zip(outputs, natives, strict=True)]
    return NativePath(translator, found, rows.open(form), report)


def _table(
    translator: Translator, canonical: Encoder, outputs: Sequence[NativeCodec], layout: NativeLayout
) -> NativeTable | None:
    """Return a table in the extension's format, or None if the plain path has to handle it.

    This applies to masked tables, and to tables that are not written to the canonical topic.
    """
    masks = translator.masks
    if masks is not None and not masks.takes_natively(layout):
        return None
    if isinstance(canonical, FilteredCodec) and not canonical.takes(translator.source, layout.table):
        return None
    return native_table(translator.source, translator.dialect.name, outputs, layout)


def _rows(translator: Translator) -> NativeRows | str:
    """Return the dialect's support for the native path, or the reason why the path cannot be used."""
    dialect = translator.dialect
    if not isinstance(dialect, HasNativeRows):
        return f"dialect {dialect.name} does not support it"
    if isinstance(dialect, Guarded) and not isinstance(dialect.guard(), (NativeGuard, NoneType)):
        return "a check must process every change"
    return dialect.native_rows() or "with these options, all messages of the source take the plain path"


def _native_codec(codec: Encoder) -> NativeCodec | None:
    """Return the codec of an output if the extension writes its records."""
    whole = codec.whole if isinstance(codec, FilteredCodec) else codec
    return codec if isinstance(whole, NativeCodec) and isinstance(codec, NativeCodec) else None


def convert_cell(text: bytes, convert: Converter | None) -> bytes:
    """Return the canonical value, as JSON, for a cell sent as a JSON scalar.

    Raises:
        Unrepresentable, Assumed: the row needs an issue or a note.
        ValueError: the text cannot be encoded in UTF-8.
    """
    value = _decode(text)
    return _encode(value if convert is None else convert(value))


def convert_bytes(cell: bytes, convert: Converter) -> bytes:
    """Return the canonical value, as JSON, for a cell that its converter reads from raw bytes.

    Raises:
        Unrepresentable, Assumed: the row needs an issue or a note.
        ValueError: the converter does not support such a cell.
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
