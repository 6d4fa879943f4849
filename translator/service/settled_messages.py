"""Write messages whose records need no wait, no earlier publication and no rejection.

Usually, all messages in a run are like this. They are written and counted together, whichever path translated them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from translator._native.layout import TakenMessage
from translator._native.taken import records, totals
from translator.codecs.record import Record
from translator.errors import ContradictionError
from translator.message import Learned, Message, Needs
from translator.resolution.resolve import EventOutput, Resolved, Translation
from translator.resolution.routes import Levels
from translator.service.delivery.base import Batch
from translator.translation.partition_guards import Guards

Settled: TypeAlias = Translation | TakenMessage
"""Return `Translation.is_settled`, or True for a message from the native path."""


def parts(run: Sequence[Resolved]) -> Iterator[tuple[bool, list[Resolved]]]:
    """Split a run into consecutive parts, and yield each part with a flag that is true if it is settled. No part mixes
    native and plain results.
    """
    # The run is first grouped by type, which happens in C. Checking each native result in Python would take 0.2 us.
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
    """Pass a part to its partition's guard. Returns how many messages may be written, and why the next message may not
    be written.
    """
    if isinstance(found[0], Translation):
        return guards.inspect_run(messages, [one.read for one in found])  # type: ignore[union-attr]  # of one way
    return guards.inspect_taken(messages, found)  # type: ignore[arg-type]  # of one way


class TopicRecords(NamedTuple):
    """The records for one topic of an output."""

    topic: str
    partitions: int
    records: list[Record]


async def by_topic(output: EventOutput, number: int, source: str, found: Sequence[Settled]) -> list[TopicRecords]:
    """Return messages' records for an output whose topics exist.

    Args:
        number: the output's number.

    Raises:
        TopicRefused: a topic cannot be created or used.
        RetryableError: no broker responded.
    """
    if output.routes is None:
        if isinstance(found[0], Translation):
            written = [record for one in found for record in one.outputs[number]]  # type: ignore[union-attr]
        else:
            written = records(found, number)  # type: ignore[arg-type]  # a list of one way
        return [TopicRecords(output.to.topic, output.to.partitions, written)]
    parts = output.routes.split(pair for one in found for pair in _by_table(one, number, source))
    return [TopicRecords(topic, await output.routes.partitions(topic), part) for topic, part in parts.items()]


def _by_table(one: Settled, number: int, source: str) -> Iterable[tuple[Levels, Sequence[Record]]]:
    if isinstance(one, Translation):
        return one.by_table(number)
    table = one.operation.table
    return (((source, table.db, table.schema, table.table), one.outputs[number]),)


async def write(batch: Batch, outputs: Sequence[EventOutput], place: int, last: int, found: Sequence[Settled]) -> None:
    """Write and count the records for messages.

    Args:
        place: the `output_place` of their partition.
        last: the last message's offset.

    Raises:
        TopicRefused: a topic cannot be created or used. Nothing is written.
    """
    account = batch.account
    # This is done before the first record is sent, because an open transaction must not wait for a topic to be created.
    ready = [await by_topic(output, number, account.source, found) for number, output in enumerate(outputs)]
    for output, parts in zip(outputs, ready, strict=True):
        for part in parts:
            await batch.send(part.topic, place % part.partitions, part.records)
            account.written[output.to.topic] += len(part.records)
    await batch.end_message(last, len(found))
    if isinstance(found[0], Translation):
        for one in found:
            account.count(one.events.events if one.events else ())  # type: ignore[union-attr]  # of one way
    else:
        account.count_taken(totals(found))  # type: ignore[arg-type]  # a list of one way
    account.translated += len(found)
