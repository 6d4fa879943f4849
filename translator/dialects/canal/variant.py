"""Assign the fields `data` and `old` to images, for every variant of a message. The tables contain the rules in §6.5.

Two things determine the result. The *era* is what the operator declared about the writer at the time of the message.
The *shape* consists of the message's type and of the fields (`data`, `old`) that contain rows. A single image cannot be
misread, whichever field contains it. Two images with the same columns can be, and only the era distinguishes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import TypeAlias

from msgspec import Struct, structs

from translator.dialects._json import JsonObject
from translator.dialects.canal.marks import MARKS, WriterMark
from translator.dialects.canal.options import Options
from translator.dialects.canal.profile import PROFILES
from translator.errors import ErrorCode, MessageError

Row: TypeAlias = Mapping[str, object]
OldRow: TypeAlias = Row | None
"""An `old` entry may be null or empty if no change is known (§4.1)."""

FORM_CHANGED = datetime(2022, 3, 20, tzinfo=timezone(timedelta(hours=8)))
"""If a DTS instance was created before this time and has not been restarted since, it writes the legacy format (§6.1).
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VARIANT_CONFLICT = "VARIANT_CONFLICT"
SWAP_OLD_DATA = "SWAP_OLD_DATA"
OLD_LENGTH_MISMATCH = "OLD_LENGTH_MISMATCH"
IMAGE_IN_OLD = "IMAGE_IN_OLD"
OLD_LISTS_UNCHANGED = "OLD_LISTS_UNCHANGED"


class Era(Struct, frozen=True):
    """The conclusion from the declaration alone, before a message's shape is checked.

    `data_is` is the image in `data` for an update with two images: `after`, `before`, or None if the declaration does
    not determine it. `doubt` is the reason for rejecting two full images. `alibaba`: a DTS instance is the writer, and
    its DELETE shows the format.
    """

    variant: str
    basis: str
    data_is: str | None
    doubt: str | None = None
    alibaba: bool = False
    notes: tuple[str, ...] = ()
    no_dts: bool = False
    deleted_in_old: bool = False
    """True if the declared writer is not Alibaba DTS, and puts the row of a DELETE into `old`."""


class EraSpan(Struct, frozen=True):
    """The era for all messages whose `ts`, in milliseconds, is within bounds."""

    low: int
    high: int
    era: Era


_EARLIEST, _LATEST = -(2**63), 2**63 - 1
"""The bounds of an unlimited span. A span without bounds also applies to messages without `ts`."""

EraOf: TypeAlias = Callable[[int | None], Era]
"""Returns the era for a message's `ts` in milliseconds, or for None if the message has none."""

_CURRENT = Era("dts", "declared", "after", alibaba=True)
_LEGACY: Mapping[str, Era] = {
    "data_is_before": Era("dts_legacy", "declared", "before", alibaba=True),
    "old_is_before": Era("dts_legacy", "declared", "after", alibaba=True),
}
_NEAR = "its ts is missing, or too close to the restart to tell which row is which"
_AUTO = (
    "a single message does not show which one is the row before the change; declare the writer instead of using "
    "profile auto"
)


def era_of(options: Options) -> EraOf:
    """Return the rule set by the options, for messages without a mark."""
    return partial(_in_spans, era_spans(options))


def era_spans(options: Options) -> tuple[EraSpan, ...]:
    """Return the time spans in which the options alone determine the era: a single span, or one on each side of a
    restart.
    """
    legacy = _LEGACY[options.legacy_update_direction]
    instance = options.instance
    if options.profile == "auto":
        return _always(Era("oss", "inferred", None, _AUTO))
    profile = PROFILES[options.profile]
    if not profile.alibaba:
        return _always(Era(options.profile, "declared", "after", deleted_in_old=profile.deleted_in == "old"))
    if options.profile == "dts_legacy":
        return _always(legacy)
    if instance is None or instance.created >= FORM_CHANGED:
        return _always(_CURRENT)
    # Only the first restart changes the format. Later restarts change nothing.
    switches = [restart for restart in instance.restarted if restart >= FORM_CHANGED]
    if not switches:
        return _always(legacy)
    switch, tolerance = _milliseconds(min(switches)), options.restart_tolerance // timedelta(milliseconds=1)
    return (
        EraSpan(_EARLIEST, switch - tolerance - 1, legacy),
        EraSpan(switch + tolerance + 1, _LATEST, _CURRENT),
    )


def _always(era: Era) -> tuple[EraSpan, ...]:
    return (EraSpan(_EARLIEST, _LATEST, era),)


def _in_spans(spans: Sequence[EraSpan], ts: int | None) -> Era:
    before, since = spans[0], spans[-1]
    if before is since:
        return before.era
    if ts is None or before.high < ts < since.low:
        # If both formats are read the same way (`old_is_before`), it does not matter how close the restart is.
        alike = before.era.data_is == "after"
        return Era("dts", "inferred", "after" if alike else None, None if alike else _NEAR, alibaba=True)
    return before.era if ts <= before.high else since.era


def era_by_marks(era: Era, profile: str, type_: str, body: JsonObject) -> Era:
    """Return the era of a message according to its marks. They can identify the writer or contradict the
    declaration.
    """
    if profile == "auto":
        for member, named in _NAMED.items():
            if member in body:
                return named
    mark = next((mark for mark in _MARKS_FOR[profile] if mark.seen(type_, body)), None)
    if mark is None:
        no_dts = any(mark.seen(type_, body) for mark in _NO_DTS.get(profile, ()))
        return structs.replace(era, no_dts=True) if no_dts else era
    if profile == "auto" and mark.variant == _CKAFKA:
        return Era(mark.variant, mark.basis, "after", no_dts=True)
    if profile == "auto":
        return Era(mark.variant, mark.basis, None, _AUTO, no_dts=mark.variant == _FLINK)
    doubt = (
        f"its mark ({mark.words}) shows that it was not sent by the declared writer; declare the actual writer"
        if mark.legacy
        else None
    )
    return structs.replace(era, doubt=doubt, notes=(VARIANT_CONFLICT,))


_NAMED: Mapping[str, Era] = {
    "_tidb": Era("ticdc", "certain", "after"),
    "pgType": Era("volcengine", "certain", "after"),
}
"""The eras that `auto` derives from fields that identify their writer."""

ERAS_BY_MARK = (
    _NAMED["_tidb"],
    Era("ticdc", "inferred", None, _AUTO),
    Era("flink_cdc", "inferred", None, _AUTO, no_dts=True),
    Era("dts", "inferred", None, _AUTO),
    Era("oss", "inferred", None, _AUTO),
)
"""The eras that `auto` derives for common row messages from their marks. The marks come in this order: `_tidb`, an id
of 0, missing fields or cells that are not text, an `es` that is not in whole seconds, and no mark. This is the
extension's order.
"""

_MARKS_FOR: Mapping[str, Sequence[WriterMark]] = {
    profile: [mark for mark in MARKS if profile == "auto" or profile in mark.excludes] for profile in PROFILES
}

_FLINK = "flink_cdc"
_CKAFKA = "ckafka"
_NO_DTS = {profile: [mark for mark in MARKS if mark.variant == profile] for profile in (_FLINK, _CKAFKA)}
"""The marks that rule out DTS and DRS. A DELETE with its row in `old` then proves nothing."""


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


class Images(Struct, frozen=True):
    """The images of a message's rows: lists of equal length, or None for an image that the message does not have."""

    before: Sequence[OldRow] | None
    after: Sequence[Row] | None
    variant: str
    basis: str
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> Row:
        """The first row of the after image, if it exists. If only a before image exists, none of its rows is empty."""
        rows = self.after or self.before
        return (rows[0] if rows else None) or {}


def read_images(type_: str, data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    """Assign the images. At least one of `data` and `old` must contain rows.

    Raises:
        MessageError: no documented writer writes this shape, or two writers give it different meanings.
    """
    return _RULES[type_, bool(data), has_rows(old)](data, old, era)


def notes_on_old(images: Images, era: Era, key: Sequence[str]) -> tuple[str, ...]:
    """Return notes on an UPDATE with two full images that canal cannot have written, because canal lists only changed
    columns.

    In a message's first row, canal lists only changed columns in `old`. A topic that is partitioned by key may split a
    message. The first row may then list columns that changed in earlier rows (§4.3, §4.6). An unchanged column
    therefore proves nothing, and neither does a full image of a row whose key changed. However, if a key column is
    listed although it did not change, a statement must have changed the keys of other rows.

    Args:
        key: the key columns. If the table has none, every unchanged column in a full image counts.
    """
    if era.variant != "oss" or era.data_is is None or not images.before or not images.after:
        return ()
    before, after = images.before[0], images.after[0]
    if before is None or len(before) < len(after):
        return ()
    if key:
        unchanged = all(name in after and before[name] == after[name] for name in key)
    else:
        unchanged = any(before[name] == value for name, value in after.items())
    return (OLD_LISTS_UNCHANGED, *_conflict(era, "dts")) if unchanged else ()


def has_rows(rows: Sequence[OldRow]) -> bool:
    """Return whether the field contains a row: `[]`, `[null]` and `[{}]` do not (§6.5)."""
    return any(rows)


Rule: TypeAlias = Callable[[Sequence[Row], Sequence[OldRow], Era], Images]


def _after_in_data(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    return Images(None, data, era.variant, era.basis)


def _after_in_old(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    """Accept the image of a new row in `old`. No writer documents this. But a new row has only one image, which cannot
    be mistaken for another.
    """
    if era.data_is is None and not era.alibaba:
        reason = (
            "a new row has its image in old, which no known writer sends; declare the writer or correct the declaration"
        )
        raise MessageError(ErrorCode.AMBIGUOUS_VARIANT, reason, path="$.old")
    return Images(None, _complete(old), "dts_legacy", "inferred", (*_conflict(era, "dts_legacy"), IMAGE_IN_OLD))


def _before_in_data(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    if era.deleted_in_old:
        return Images(data, None, "dts", "inferred", _conflict(era, "dts"))
    if not era.alibaba:
        return Images(data, None, era.variant, era.basis)
    return Images(data, None, "dts", "certain", _conflict(era, "dts"))


def _before_in_old(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    if era.no_dts or era.deleted_in_old:
        return Images(_complete(old), None, era.variant, era.basis)
    # Among Alibaba instances, only a legacy one writes this. If Alibaba is not declared, Huawei DRS can be the writer.
    basis = "certain" if era.alibaba else "inferred"
    return Images(_complete(old), None, "dts_legacy", basis, _conflict(era, "dts_legacy"))


def _before_in_both(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    if list(data) != list(old):
        raise MessageError(ErrorCode.AMBIGUOUS_VARIANT, "data and old of a DELETE contain different rows")
    return Images(data, None, era.variant, era.basis)


def _update_without_old(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    """The writer is canal up to 1.1.6, or the row images are MINIMAL. From a legacy DTS instance, `data` would be the
    before image.
    """
    return _after_alone("an UPDATE has rows only in data", data, era)


def _after_alone(met: str, data: Sequence[Row], era: Era, notes: tuple[str, ...] = ()) -> Images:
    """`data` is the after image, and the before image is unknown. `met` describes what the message contains."""
    if era.data_is != "after":
        reason = f"{met}, and for its writer data may be the row before the change"
        raise MessageError(ErrorCode.AMBIGUOUS_VARIANT, reason, path="$.old")
    return Images(None, data, era.variant, era.basis, notes)


def _update(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    if len(old) != len(data):
        # canal up to 1.1.6 left empty `old` entries out, so no pair can be trusted (§4.2).
        met = f"data and old of an UPDATE have different lengths ({len(data)} and {len(old)})"
        return _after_alone(met, data, era, (OLD_LENGTH_MISMATCH,))
    if _all_columns(data, old):
        return _two_full_images(data, old, era)
    if era.data_is == "after" or not era.alibaba:
        return Images(old, data, era.variant, era.basis)
    # Only changed columns: the legacy format has all columns in both images (§6.5).
    return Images(old, data, "dts", "inferred", _conflict(era, "dts"))


def _all_columns(data: Sequence[Row], old: Sequence[OldRow]) -> bool:
    """Return whether every `old` entry contains all of its row's columns."""
    same = True
    for index, (row, old_row) in enumerate(zip(data, old, strict=True)):
        columns = old_row.keys() if old_row is not None else frozenset[str]()
        if not columns <= row.keys():
            reason = "old has columns that are missing from the same row in data"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$.old[{index}]")
        same = same and len(columns) == len(row)
    return same


def _two_full_images(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
    if era.doubt is not None:
        raise MessageError(
            ErrorCode.AMBIGUOUS_VARIANT, f"an UPDATE has the same columns in both images, and {era.doubt}"
        )
    if era.data_is == "before":
        return Images(data, _complete(old), era.variant, era.basis, (SWAP_OLD_DATA,))
    return Images(old, data, era.variant, era.basis)


def _complete(old: Sequence[OldRow]) -> Sequence[Row]:
    """Return the rows in `old`, for messages in which these are complete rows. None of them may therefore be empty."""
    rows = [row for row in old if row]
    if len(rows) != len(old):
        raise MessageError(ErrorCode.INVALID_FIELD, "old contains rows, but one of them is empty", path="$.old")
    return rows


def _conflict(era: Era, met: str) -> tuple[str, ...]:
    """Return the note that a message contradicts the declaration. Return no note if the declaration leaves this
    open.
    """
    declared = era.data_is is not None and era.basis != "inferred"
    conflict = declared and era.variant != met and VARIANT_CONFLICT not in era.notes
    return (VARIANT_CONFLICT,) if conflict else ()


def _refuse(code: ErrorCode, reason: str) -> Rule:
    def rule(data: Sequence[Row], old: Sequence[OldRow], era: Era) -> Images:
        raise MessageError(code, reason)

    return rule


_TWO_IMAGES = "a new row has an image in data and another one in old; no known writer sends this"
_OLD_ONLY = "an UPDATE has rows only in old; no known writer sends this"

_RULES: Mapping[tuple[str, bool, bool], Rule] = {
    # (type, rows in data, rows in old)
    ("INSERT", True, False): _after_in_data,
    ("INSERT", False, True): _after_in_old,
    ("INSERT", True, True): _refuse(ErrorCode.UNSUPPORTED_SHAPE, _TWO_IMAGES),
    ("INIT", True, False): _after_in_data,
    ("INIT", False, True): _after_in_old,
    ("INIT", True, True): _refuse(ErrorCode.UNSUPPORTED_SHAPE, _TWO_IMAGES),
    ("UPDATE", True, False): _update_without_old,
    ("UPDATE", False, True): _refuse(ErrorCode.AMBIGUOUS_VARIANT, _OLD_ONLY),
    ("UPDATE", True, True): _update,
    ("DELETE", True, False): _before_in_data,
    ("DELETE", False, True): _before_in_old,
    ("DELETE", True, True): _before_in_both,
}
