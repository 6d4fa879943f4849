"""The `meta` object: times, transaction, and the leftovers (formats/shareplex.md section 2).

Only `op` and `table` are always there; `decode.py` reads them. Everything else is optional, and stock Quest output has
none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from translator.dialects._json import JsonObject
from translator.dialects._rows import Findings
from translator.dialects.shareplex.options import Rules
from translator.envelope import Tx
from translator.errors import ErrorCode, MessageError
from translator.values import zone

_encode = msgspec.json.Encoder(decimal_format="number").encode


class Meta(Struct):
    """What `meta` says beside the operation and the table. `ext` keeps as text what has no field of its own.

    `notes` and `findings` gather what is to be said of the message.
    """

    ts_commit_us: int | None = None
    ts_capture_us: int | None = None
    scn: str | None = None
    host: str | None = None
    tx: Tx | None = None
    trans: str | None = None
    seq: int | None = None
    size: int | None = None
    idx: tuple[int, int] | None = None
    notes: list[str] = []
    findings: Findings = msgspec.field(default_factory=Findings)
    ext: dict[str, str] = {}

    def keep(self, name: str, value: Any) -> None:
        """Keep a member as it was sent: text as it is, anything else as JSON text.

        Raises:
            MessageError: INVALID_FIELD, a lone surrogate in it.
        """
        try:
            self.ext[name] = value if isinstance(value, str) else _encode(value).decode()
        except UnicodeEncodeError:
            raise MessageError(ErrorCode.INVALID_FIELD, "a lone surrogate in text that is kept", path=name) from None

    def note(self, text: str) -> None:
        """Note a decision, once."""
        if text not in self.notes:
            self.notes.append(text)


class _Invalid(Exception):
    """Members of `meta` are not what they should be; the text says what is wrong."""

    def __init__(self, names: Iterable[str], wrong: str) -> None:
        super().__init__(wrong)
        self.names = tuple(names)


def read_meta(sent: JsonObject, rules: Rules) -> Meta:
    """The optional members of `meta`; null is the same as absent.

    Raises:
        MessageError: INVALID_FIELD, unless the preset is lenient: then the member is kept in `ext` and noted.
    """
    meta = Meta()
    for name, value in sent.items():
        if value is None or name == "op":
            continue
        try:
            _READERS.get(name, _leftover)(meta, name, value, rules)
        except _Invalid as invalid:
            _refuse(meta, sent, invalid, rules)
    try:
        _transaction(meta, sent)
    except _Invalid as invalid:
        _refuse(meta, sent, invalid, rules)
    return meta


def _refuse(meta: Meta, sent: JsonObject, invalid: _Invalid, rules: Rules) -> None:
    if rules.strict:
        reason = f"{', '.join(invalid.names)}: {invalid}"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.meta.{invalid.names[0]}")
    for name in invalid.names:
        meta.keep(name, sent[name])
        meta.note(f"INVALID_META={name}")


# -- one reader per member; the value is never null there


def _leftover(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.keep(name, value)


def _table(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    """The table's name loses the quotes around its parts; the raw text stays."""
    if '"' in value:
        meta.keep(name, value)


def _commit_time(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.ts_commit_us = _micros(meta, name, value, rules)


def _post_time(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.ts_capture_us = _micros(meta, name, value, rules)


def _scn(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    text = _word(name, value)
    if rules.decimal_scn and not _SCN.fullmatch(text):
        raise _Invalid((name,), f"not 1 to 20 decimal digits, as preset {rules.preset} wants")
    meta.scn = text


def _host(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.host = _word(name, value)


def _trans(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.trans = _word(name, value)


def _seq(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.seq = _count(name, value)


def _size(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    meta.size = _count(name, value)


def _idx(meta: Meta, name: str, value: Any, rules: Rules) -> None:
    seq, slash, size = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not slash:
        raise _Invalid((name,), "not seq/size")
    meta.idx = _count(name, seq), _count(name, size)


_READERS: Mapping[str, Callable[[Meta, str, Any, Rules], None]] = {
    "table": _table,
    "time": _commit_time,
    "posttime": _post_time,
    "scn": _scn,
    "host": _host,
    "trans": _trans,
    "seq": _seq,
    "size": _size,
    "idx": _idx,
}


def _word(name: str, value: Any) -> str:
    """Writers send identifiers as strings or as numbers (section 2: scn, userid)."""
    if isinstance(value, str) and value:
        return value
    if type(value) is int:
        return str(value)
    raise _Invalid((name,), "not a non-empty string or a whole number")


_SCN = re.compile(r"[0-9]{1,20}")
_DIGITS = re.compile(r"[0-9]{1,19}")
_MAX_LONG = 2**63 - 1


def _count(name: str, value: Any) -> int:
    number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
    if type(number) is not int or not 1 <= number <= _MAX_LONG:
        raise _Invalid((name,), "not a whole number from 1 on")
    return number


def _transaction(meta: Meta, sent: JsonObject) -> None:
    """`idx` is `seq/size`; each fills in what the other lacks. Without `trans` there is nothing that they count."""
    if meta.trans is not None:
        meta.tx = Tx(meta.trans)
    idx_seq, idx_size = meta.idx or (None, None)
    seq, size = meta.seq or idx_seq, meta.size or idx_size
    if seq is None and size is None:
        return
    counts = [name for name in ("idx", "seq", "size") if getattr(meta, name) is not None]
    if (idx_seq or seq, idx_size or size) != (seq, size) or (seq and size and seq > size):
        raise _Invalid(counts, "do not agree: idx is seq/size, and seq is at most size")
    if meta.trans is not None:
        meta.tx = Tx(meta.trans, seq, size, seq == size if seq and size else None)
        return
    for name in counts:
        meta.keep(name, sent[name])


_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})(?:\.(\d{0,9}))?(Z|[+-]\d{2}(?::?[0-5]\d)?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _micros(meta: Meta, name: str, value: Any, rules: Rules) -> int | None:
    """Microseconds since 1970 in UTC. What they cannot say stays in `ext` as it was sent."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _Invalid((name,), "not a time such as 2017-06-16T14:24:34")
    clock, fraction, offset = match.groups()
    try:
        local = datetime.fromisoformat(clock)
        tz = zone(offset) if offset else rules.zone
    except ValueError:
        raise _Invalid((name,), "a time that no calendar has") from None
    if not offset:
        meta.note(rules.zone_note)
    if tz is None:
        meta.keep(name, value)
        return None
    moment = local.replace(tzinfo=tz)
    if moment.utcoffset() != moment.replace(fold=1).utcoffset():
        # An hour that the zone has twice, or not at all.
        meta.note("TZ_AMBIGUOUS")
        meta.keep(name, value)
        return None
    digits = (fraction or "").ljust(9, "0")
    if digits[6:] != "000":
        meta.keep(name, value)
    return (moment - _EPOCH) // _MICROSECOND + int(digits[:6])
