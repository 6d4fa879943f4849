"""Collect the objects in a value, each with its operation and table. The two halves of an update form one part.

No sample shows UPDATE BEFORE or UPDATE AFTER (§4, Before/after pairs). Halves are joined only within one value. To join
halves from several values, state would be needed, and an event must not depend on another record.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from translator.dialects._json import JsonObject
from translator.dialects.shareplex.names import Table
from translator.errors import ErrorCode, MessageError

BEFORE, AFTER, PAIR = "UPDATE BEFORE", "UPDATE AFTER", "UPDATE BEFORE and AFTER"


class Part(Struct, frozen=True):
    """An object in a value."""

    place: int
    operation: str
    """One of `options.OPERATIONS`, or PAIR."""

    root: JsonObject
    meta: JsonObject
    table: Table
    other: Part | None = None
    """The UPDATE BEFORE of a PAIR. All other fields are from the UPDATE AFTER."""


def joined(parts: Sequence[Part]) -> list[Part]:
    """Return the parts in order. A joined pair has the position of its second half.

    Raises:
        MessageError: UNSUPPORTED_SHAPE, because a half has no counterpart. The path begins with the number of that
            object.
    """
    whole: list[Part] = []
    waiting: dict[tuple[str, ...], Part] = {}
    for part in parts:
        if part.operation not in (BEFORE, AFTER):
            whole.append(part)
            continue
        identity = _in_transaction(part)
        first = waiting.pop(identity, None)
        if first is None:
            waiting[identity] = part
        elif first.operation == part.operation or not (identity or _are_one(first, part)):
            raise _alone(first)
        else:
            before, after = (first, part) if first.operation == BEFORE else (part, first)
            whole.append(msgspec.structs.replace(after, place=part.place, operation=PAIR, other=before))
    if waiting:
        raise _alone(min(waiting.values(), key=lambda part: part.place))
    return whole


def _in_transaction(part: Part) -> tuple[str, ...]:
    """Return the table, the transaction and the position in the transaction.

    Together, these identify one operation. The result is empty if the part lacks any of these.
    """
    trans, seq = part.meta.get("trans"), _seq(part)
    if trans is None or seq is None:
        return ()
    return (repr(part.table.name), str(trans), seq)


def _seq(part: Part) -> str | None:
    """Return the position in the transaction. It is `seq` or, failing that, the first number in `idx` (§2)."""
    seq, idx = part.meta.get("seq"), part.meta.get("idx")
    if seq is None and isinstance(idx, str):
        seq = idx.partition("/")[0]
    return None if seq is None else str(seq)


def _are_one(first: Part, second: Part) -> bool:
    """Return whether two adjacent halves belong to one row.

    The row address or the configured key decides. Without these, the two keywords must be in order, and nothing may
    point to another row or another position in the transaction.
    """
    if second.place != first.place + 1 or first.table.name != second.table.name:
        return False
    for name in ("trans", "scn", "rowid"):
        one, two = first.meta.get(name), second.meta.get(name)
        if one is not None and two is not None and str(one) != str(two):
            return False
    if first.meta.get("rowid") is not None and second.meta.get("rowid") is not None:
        return True
    one, two = _key(first), _key(second)
    if one is not None and two is not None:
        return one == two
    return first.operation == BEFORE and not first.table.key and _seq(first) == _seq(second)


def _key(part: Part) -> list[object] | None:
    data = part.root.get("data")
    if not part.table.key or not isinstance(data, dict):
        return None
    return [data.get(name) for name in part.table.key]


def _alone(half: Part) -> MessageError:
    reason = (
        f"the other half of {half.operation} is missing from the value; halves match by "
        f"trans and seq or, if adjacent, by rowid or the configured key"
    )
    return MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$[{half.place}].meta.op")
