"""Parse the common row message directly into types, so that fields need no type checks.

This is a shortcut for speed. The fast path declines any unusual or faulty message. The plain path (`decode.py`) then
reads such a message from the start and raises the appropriate error. A property test checks that both paths give the
same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

from cdc_core.envelope import Tx
from translator.dialects.shareplex import rows
from translator.dialects.shareplex.envelope_fields import Meta, is_scn
from translator.dialects.shareplex.instants import Instants
from translator.dialects.shareplex.names import Table
from translator.dialects.shareplex.options import SharePlexRules
from translator.dialects.shareplex.rows import Cells, RowContext
from translator.errors import MessageError
from translator.message import Limits, RowChange, Writer
from translator.values import Assumed, Unrepresentable

_Count = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
_Word = Annotated[str, msgspec.Meta(min_length=1)]
_Name: TypeAlias = _Word | int


class _MetaObject(Struct):
    """The fields on the format page, in the order in which events contain the fields. UNSET means not sent."""

    op: str
    table: str
    time: str | UnsetType = UNSET
    posttime: str | UnsetType = UNSET
    scn: _Name | UnsetType = UNSET
    host: _Word | UnsetType = UNSET
    trans: _Name | UnsetType = UNSET
    seq: _Count | UnsetType = UNSET
    size: _Count | UnsetType = UNSET
    idx: str | UnsetType = UNSET
    userid: str | int | UnsetType = UNSET
    rowid: str | UnsetType = UNSET


class _Body(Struct):
    meta: _MetaObject
    data: dict[str, Any]
    key: dict[str, Any] | UnsetType | None = UNSET


class _GiveUp(Exception):
    """The plain path must read the message."""


_decode = msgspec.json.Decoder(_Body, float_hook=Decimal).decode
_META_MEMBERS = len(_MetaObject.__struct_fields__)
_WHITE = b" \t\r\n"
DEPTH = 2
"""A message's nesting depth: the root object, and an object inside it."""
_NUMBERS = frozenset((int, Decimal, bool))
_UNUSUAL = (
    _GiveUp,
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
    ArithmeticError,  # of Decimal
    ValueError,  # of a time
    MessageError,
    Unrepresentable,
    Assumed,
)


class QuickReader:
    """Reads a source's common row messages.

    Args:
        table: finds a table by its raw name.
        writer: returns the writer for messages from a host.
    """

    def __init__(
        self,
        rules: SharePlexRules,
        instants: Instants,
        limits: Limits,
        table: Callable[[str], Table],
        writer: Callable[[str | None], Writer],
    ) -> None:
        self._rules = rules
        self._instants = instants
        self._columns = limits.columns if limits.json_depth >= DEPTH and limits.rows else 0
        self._table = table
        self._writer = writer
        self._builders = {word: _BUILDERS[meaning] for word, meaning in row_words(rules).items()}

    def read(self, value: bytes) -> RowChange | None:
        """Return a message's change, or None for the plain path."""
        try:
            body = _decode(value)
            builder = self._builders.get(body.meta.op)
            if builder is None or not _is_whole(value, body) or not 0 < len(body.data) <= self._columns:
                return None
            table = self._table(body.meta.table)
            return builder(
                self,
                body,
                RowContext(table, self._meta(body.meta), self._writer(body.meta.host or None), rows.NO_FINDINGS),
            )
        except _UNUSUAL:
            return None

    def _meta(self, sent: _MetaObject) -> Meta:
        """Read `meta`, with the same results as `MetaReader.read`."""
        meta = Meta()
        if '"' in sent.table:
            meta.ext["table"] = sent.table
        if sent.time is not UNSET:
            meta.ts_commit_us = meta.tell("time", sent.time, self._instants.of(sent.time))
        if sent.posttime is not UNSET:
            meta.ts_capture_us = meta.tell("posttime", sent.posttime, self._instants.of(sent.posttime))
        if sent.scn is not UNSET:
            meta.scn = str(sent.scn)
            if self._rules.decimal_scn and not is_scn(meta.scn):
                raise _GiveUp
        meta.tx = _transaction(sent)
        if sent.userid is not UNSET:
            meta.ext["userid"] = str(sent.userid)
        if sent.rowid is not UNSET:
            meta.ext["rowid"] = sent.rowid
        return meta

    def _insert(self, body: _Body, row: RowContext) -> RowChange:
        _without_key(body)
        return rows.insert(row, _cells(body.data, row.table))

    def _delete(self, body: _Body, row: RowContext) -> RowChange:
        _without_key(body)
        return rows.delete(row, _cells(body.data, row.table))

    def _update(self, body: _Body, row: RowContext) -> RowChange:
        key = body.key or None
        if key is not None and len(key) > self._columns:
            raise _GiveUp
        old = None if key is None else _cells(key, row.table)
        return rows.update(row, _cells(body.data, row.table), old, key_is_key=self._rules.key_is_key)


_Builder: TypeAlias = Callable[[QuickReader, _Body, RowContext], RowChange]

_BUILDERS: Mapping[str, _Builder] = {
    "ins": QuickReader._insert,
    "upd": QuickReader._update,
    "del": QuickReader._delete,
}
_WORDS: Mapping[str, str] = {
    "INSERT": "ins",
    "UPDATE": "upd",
    "DELETE": "del",
    "INS": "ins",
    "UPD": "upd",
    "DEL": "del",
}
"""The documented keywords and the codes in upper case. The general decoder reads other spellings."""


def row_words(rules: SharePlexRules) -> dict[str, str]:
    """Return the keywords for row operations that are read on the fast path, in exactly this spelling, each with its
    operation.
    """
    return {word: meaning for word, meaning in {**_WORDS, **rules.operations}.items() if meaning in _BUILDERS}


def _is_whole(value: bytes, body: _Body) -> bool:
    """Return whether the body contains everything in the text, so that no field is repeated or unknown.

    Without white space, each field's colon follows a quote. Strings can only add more of these pairs. If the number of
    pairs equals the number of fields in the body, every field was therefore read.
    """
    key = body.key
    members = len(body.data) + (0 if key is UNSET else 1 + len(key or ()))
    members += 2 + _META_MEMBERS - astuple(body.meta).count(UNSET)
    return value.translate(None, _WHITE).count(b'":') == members


def _without_key(body: _Body) -> None:
    """Reject a `key`, which belongs to updates. In other operations, it is unusual and kept separately."""
    if body.key is not UNSET and body.key is not None:
        raise _GiveUp


def _transaction(sent: _MetaObject) -> Tx | None:
    trans, seq, size, idx = sent.trans, sent.seq or None, sent.size or None, sent.idx
    if trans is UNSET:
        if seq or size or idx is not UNSET:
            raise _GiveUp
        return None
    if idx is not UNSET and idx != f"{seq}/{size}":
        raise _GiveUp
    if seq is None or size is None:
        return Tx(str(trans), seq, size)
    if seq > size:
        raise _GiveUp
    return Tx(str(trans), seq, size, seq == size)


def _cells(cells: dict[str, Any], table: Table) -> Cells:
    """Convert an object with cells to its image in place."""
    of_text, converters = table.of_text, table.converters
    for name, value in cells.items():
        if type(value) is str:
            convert = of_text.get(name)
            if convert is not None:
                cells[name] = convert(value)
        elif value is None:
            pass
        elif type(value) in _NUMBERS:
            convert = converters[name]
            cells[name] = value if convert is None else convert(value)
        else:
            raise _GiveUp
    return Cells(cells, cells)
