"""Read the `meta` object: times, the transaction, and all other fields (§2).

Only `op` and `table` always exist. `decode.py` reads these two. All other fields are optional, and missing from Quest's
default output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.envelope import Tx
from translator.dialects._json import JsonObject
from translator.dialects.shareplex.instants import Instant, Instants
from translator.dialects.shareplex.options import SharePlexRules
from translator.errors import ErrorCode, MessageError

_encode = msgspec.json.Encoder(decimal_format="number").encode


class Meta(Struct):
    """The fields in `meta` except operation and table. `ext` keeps those without an event field as text."""

    ts_commit_us: int | None = None
    ts_capture_us: int | None = None
    scn: str | None = None
    host: str | None = None
    tx: Tx | None = None
    notes: list[str] = []
    ext: dict[str, str] = {}

    def keep(self, name: str, value: Any) -> None:
        """Return a field in the form in which it was sent: text unchanged, and anything else as JSON text.

        Raises:
            MessageError: INVALID_FIELD, because the field contains a lone surrogate.
        """
        try:
            self.ext[name] = value if isinstance(value, str) else _encode(value).decode()
        except UnicodeEncodeError:
            raise MessageError(
                ErrorCode.INVALID_FIELD, "text that must be kept contains a lone surrogate", path=name
            ) from None

    def note(self, text: str) -> None:
        """Add a note about a decision, unless it already exists."""
        if text not in self.notes:
            self.notes.append(text)

    def tell(self, name: str, sent: str, instant: Instant) -> int | None:
        """Return a time in microseconds. If this loses information, add a note and keep the text."""
        if instant.zone_note is not None:
            self.note(instant.zone_note)
        if instant.assumed is not None:
            # The bare name is not used, because `TZ_OVERLAP=time` would refer to a column.
            self.note(f"{instant.assumed}=meta.{name}")
        if not instant.exact:
            self.ext[name] = sent
        return instant.micros


class _Reading(Meta):
    """The state of reading a `meta` object."""

    trans: str | None = None
    seq: int | None = None
    size: int | None = None
    idx: tuple[int, int] | None = None


class _Invalid(Exception):
    """Fields in `meta` are invalid. The error text gives the reason."""

    def __init__(self, names: Iterable[str], wrong: str) -> None:
        super().__init__(wrong)
        self.names = tuple(names)


class MetaReader:
    """Reads the optional fields in `meta`. Null is the same as absent."""

    def __init__(self, rules: SharePlexRules, instants: Instants) -> None:
        self._rules = rules
        self._instants = instants

    def read(self, sent: JsonObject) -> Meta:
        """Read the fields: first the known ones in the order of `_READERS`, then all others in the order in which they
        were sent.

        Raises:
            MessageError: INVALID_FIELD, unless the preset is lenient. With a lenient preset, the field is kept in `ext`
                with a note.
        """
        meta = _Reading()
        for name, read in _READERS.items():
            if (value := sent.get(name)) is None:
                continue
            try:
                read(self, meta, name, value)
            except _Invalid as invalid:
                self._refuse(meta, sent, invalid)
        for name, value in sent.items():
            if value is not None and name not in _KNOWN:
                meta.keep(name, value)
        try:
            _transaction(meta, sent)
        except _Invalid as invalid:
            self._refuse(meta, sent, invalid)
        return meta

    def _refuse(self, meta: Meta, sent: JsonObject, invalid: _Invalid) -> None:
        if self._rules.strict:
            reason = f"{', '.join(invalid.names)}: {invalid}"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.meta.{invalid.names[0]}")
        for name in invalid.names:
            meta.keep(name, sent[name])
            meta.note(f"INVALID_META={name}")

    # -- one reader per field; readers never get null

    def _leftover(self, meta: _Reading, name: str, value: Any) -> None:
        meta.keep(name, value)

    def _table(self, meta: _Reading, name: str, value: Any) -> None:
        """Keep the raw text of a table name with quotes, because the quotes around its parts are not read."""
        if '"' in value:
            meta.keep(name, value)

    def _commit_time(self, meta: _Reading, name: str, value: Any) -> None:
        meta.ts_commit_us = self._micros(meta, name, value)

    def _post_time(self, meta: _Reading, name: str, value: Any) -> None:
        meta.ts_capture_us = self._micros(meta, name, value)

    def _micros(self, meta: _Reading, name: str, value: Any) -> int | None:
        try:
            instant = self._instants.of(value if isinstance(value, str) else "")
        except ValueError as error:
            raise _Invalid((name,), str(error)) from None
        return meta.tell(name, value, instant)

    def _scn(self, meta: _Reading, name: str, value: Any) -> None:
        text = _word(name, value)
        if self._rules.decimal_scn and not is_scn(text):
            raise _Invalid((name,), f"not a number of 1 to 20 decimal digits, as preset {self._rules.preset} requires")
        meta.scn = text

    def _host(self, meta: _Reading, name: str, value: Any) -> None:
        meta.host = _word(name, value)

    def _trans(self, meta: _Reading, name: str, value: Any) -> None:
        meta.trans = _word(name, value)

    def _seq(self, meta: _Reading, name: str, value: Any) -> None:
        meta.seq = _count(name, value)

    def _size(self, meta: _Reading, name: str, value: Any) -> None:
        meta.size = _count(name, value)

    def _idx(self, meta: _Reading, name: str, value: Any) -> None:
        seq, slash, size = value.partition("/") if isinstance(value, str) else ("", "", "")
        if not slash:
            raise _Invalid((name,), "not in the form seq/size")
        meta.idx = _count(name, seq), _count(name, size)


_READERS: Mapping[str, Callable[[MetaReader, _Reading, str, Any], None]] = {
    "table": MetaReader._table,
    "time": MetaReader._commit_time,
    "posttime": MetaReader._post_time,
    "scn": MetaReader._scn,
    "host": MetaReader._host,
    "trans": MetaReader._trans,
    "seq": MetaReader._seq,
    "size": MetaReader._size,
    "idx": MetaReader._idx,
    "userid": MetaReader._leftover,
    "rowid": MetaReader._leftover,
}
_KNOWN = frozenset(("op", *_READERS))


def _word(name: str, value: Any) -> str:
    """Return an identifier, which writers send as a string or as a number (§2)."""
    if isinstance(value, str) and value:
        return value
    if type(value) is int:
        return str(value)
    raise _Invalid((name,), "not a whole number or a non-empty string")


is_scn = re.compile(r"[0-9]{1,20}").fullmatch
_DIGITS = re.compile(r"[0-9]{1,19}")
_MAX_LONG = 2**63 - 1


def _count(name: str, value: Any) -> int:
    number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
    if type(number) is not int or not 1 <= number <= _MAX_LONG:
        raise _Invalid((name,), "not a whole number of 1 or more")
    return number


def _transaction(meta: _Reading, sent: JsonObject) -> None:
    """Read `idx`, which is `seq/size`. Each of the two numbers is used if the field for it is missing. Without `trans`,
    the two numbers have no meaning.
    """
    if meta.trans is not None:
        meta.tx = Tx(meta.trans)
    idx_seq, idx_size = meta.idx or (None, None)
    seq, size = meta.seq or idx_seq, meta.size or idx_size
    if seq is None and size is None:
        return
    counts = [name for name in ("idx", "seq", "size") if getattr(meta, name) is not None]
    if (idx_seq or seq, idx_size or size) != (seq, size) or (seq and size and seq > size):
        raise _Invalid(counts, "do not agree; idx is seq/size, and seq must not exceed size")
    if meta.trans is not None:
        meta.tx = Tx(meta.trans, seq, size, seq == size if seq and size else None)
        return
    for name in counts:
        meta.keep(name, sent[name])
