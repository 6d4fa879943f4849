"""Messages of which all records can be written at once: nothing has to be waited for, told before them, or refused.

As a rule these are all messages of a run; they are written and counted together, whichever way translated them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from translator._native.layout import TakenMessage
from translator.errors import ContradictionError
from translator.message import Learned, Message, Needs
from translator.service.delivery.base import Batch
from translator.service.resolve import EventOutput, Resolved, Translation
from translator.translation.partition_guards import Guards

Settled: TypeAlias = Translation | TakenMessage
"""`Translation.is_settled`, or what the native path took."""


def parts(run: Sequence[Resolved]) -> Iterator[tuple[bool, list[Resolved]]]:
    """Parts of a run in their order, and whether all of each is settled; no part is of both ways."""
    # By the type first, which is grouped in C: a look at each message that was taken would cost it 0.2 us.
    for kind, group in groupby(run, key=type):
        if kind is Translation:
            for settled, part in groupby(group, key=_is_settled):
                yield settled, list(part)
        else:
            yield kind not in (Learned, Needs), list(group)


def _is_settled(translation: Any) -> bool:
    return bool(translation.is_settled)


def inspect(
    guards: Guards, messages: Sequence[Message], found: Sequence[Settled]
) -> tuple[int, ContradictionError | None]:
    """Show a part to the guard of its partition: how many of it may be written, and why not the one behind."""
    if isinstance(found[0], Translation):
        return guards.inspect_run(messages, [one.read for one in found])  # type: ignore[union-attr]  # of one way
    return guards.inspect_taken(messages, found)  # type: ignore[arg-type]  # of one way


async def write(batch: Batch, outputs: Sequence[EventOutput], place: int, last: int, found: Sequence[Settled]) -> None:
    """Write the records of messages, and count them.

    Args:
        place: `output_place` of their partition.
        last: the offset of the last message.
    """
    account = batch.account
    for number, output in enumerate(outputs):
        to = output.to
        records = [record for one in found for record in one.outputs[number]]  # type: ignore[union-attr]  # no letters
        await batch.send(to.topic, place % to.partitions, records)
        account.written[to.topic] += len(records)
    await batch.end_message(last, len(found))
    for one in found:
        if isinstance(one, Translation):
            account.count(one.events.events if one.events else ())
            continue
        account.changes[one.operation.counted] += len(one.outputs[0])
        if one.ts_commit_us is not None:
            account.newest_us = one.ts_commit_us
    account.translated += len(found)
