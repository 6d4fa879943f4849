"""The options of `spark-sink rebuild`. The command line converts them to offsets when it queues the command. The result
therefore does not depend on when, or how often, the sink executes the command.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from spark_sink.control_tables.batches import BatchTable
from spark_sink.control_tables.cut import fold
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.rebuild import OffsetRange, Offsets

_RANGE = re.compile(r"(?P<partition>\d+):(?P<first>\d+)(-(?P<last>\d+))?")
_BATCH = re.compile(r"batch:(\d+)")


class RebuildOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The argument of a rebuild command.

    Args:
        id: identifies the new table. If the command is given again, it has another id and starts from the beginning.
        without: the records to leave out.
        table: the table to rebuild under another name (`--into`).
        ends: the offset after the last record to read in each partition (`--into`).
    """

    id: str
    without: tuple[OffsetRange, ...] = ()
    table: str = ""
    ends: Mapping[int, int] = {}

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def parse_options(text: str) -> RebuildOptions:
    """Parse the argument of a queued command.

    Raises:
        FatalError: another program wrote the command.
    """
    try:
        return msgspec.json.decode(text, type=RebuildOptions)
    except msgspec.DecodeError as error:
        raise FatalError(f"the command's argument is not valid: {error}") from None


def options_for_table(batches: BatchTable, without: Sequence[str]) -> RebuildOptions | None:
    """Return the options of a rebuild in place. Return None if there are none.

    Raises:
        ConfigError: a range is not valid.
        FatalError: a batch does not exist.
    """
    return RebuildOptions(_new_id(), tuple(_ranges(batches, without))) if without else None


def options_for_copy(
    batches: BatchTable, topic: str, table: str, as_of: str | None, without: Sequence[str]
) -> RebuildOptions:
    """Return the options for a rebuild under another name.

    Args:
        as_of: a batch number or a time, or None for everything that the sink has read.

    Raises:
        ConfigError: the time or a range is not valid.
        FatalError: a batch does not exist.
    """
    ends = batches.reached() if as_of is None else _ends_at(batches, topic, as_of)
    if not ends:
        raise FatalError(f"this pipeline has not completed any batch of topic {topic}")
    return RebuildOptions(_new_id(), tuple(_ranges(batches, without)), table, ends)


def _ends_at(batches: BatchTable, topic: str, as_of: str) -> Offsets:
    rows = batches.rows()
    if as_of.isdecimal():
        return fold(rows, topic, int(as_of)).offsets
    moment = _time(as_of)
    ended = [row for row in rows if row.batch is not None and row.topic == topic]
    before = max((row for row in ended if row.ended_at <= moment), key=lambda row: row.ended_at, default=None)
    if before is None:
        first = min((row.ended_at.isoformat() for row in ended), default="none")
        raise FatalError(
            f"no recorded batch of topic {topic} had ended at {as_of} (end of the first recorded batch: {first})"
        )
    return fold(rows, topic, before.batch, before.checkpoint).offsets


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(f"--as-of: {text!r} is not a batch number or a time such as 2026-01-31T12:00:00+00:00")
    if moment > datetime.now(UTC):
        raise ConfigError(f"--as-of: {text} is in the future")
    return moment


def _ranges(batches: BatchTable, without: Sequence[str]) -> Iterator[OffsetRange]:
    reached = batches.reached()
    for text in without:
        if (batch := _BATCH.fullmatch(text)) is not None:
            for partition, (first, end) in sorted(batches.span(int(batch[1])).items()):
                yield OffsetRange(partition, first, end - 1)
        else:
            yield _range(text, reached)


def _range(text: str, reached: Offsets) -> OffsetRange:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ConfigError(f"--without: {text!r} is not PARTITION:OFFSET, PARTITION:FIRST-LAST or batch:NUMBER")
    partition, first = int(found["partition"]), int(found["first"])
    last = first if found["last"] is None else int(found["last"])
    if last < first:
        raise ConfigError(f"--without: {text} ends before it begins")
    # Records that the sink has not read yet would be applied later.
    if last >= reached.get(partition, 0):
        read = ", ".join(f"{one}: {offset}" for one, offset in sorted(reached.items()))
        raise ConfigError(
            f"--without: the sink has not read all of {text} yet (offset after the last record by partition: {read})"
        )
    return OffsetRange(partition, first, last)


def _new_id() -> str:
    return uuid.uuid4().hex
