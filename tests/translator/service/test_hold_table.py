"""`on_error: hold_table`: messages after a dead letter of their table are held and replayed in order."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dev.servers.broker import Broker
from tests.translator.operations._owner import Owner, in_order, offsets, owner
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from translator.commands.dlq import dlq
from translator.config.settings import Settings
from translator.operations.dlq.reader import LetterFilter
from translator.operations.dlq.replay import ReplayReport

HOLD = {"AMBIGUOUS_VARIANT": "hold_table", "MALFORMED_JSON": "hold_table"}


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    yard = Yard(broker.bootstrap)
    yield yard
    yard.close()


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the silence, because nothing else arrives for which a replay would have to wait."""
    monkeypatch.setattr("translator.operations.dlq.replay.SILENCE", 0.0)


def wrong(yard: Yard, **changes: Any) -> Settings:
    """Return the service's configuration, under which updates with two complete images are dead."""
    return yard.settings(AMBIGUOUS, on_error=HOLD, **changes)


def corrected(yard: Yard, **changes: Any) -> Settings:
    return yard.settings(CLEAR, on_error=HOLD, **changes)


def canonical(yard: Yard, partition: int = 0) -> list[int]:
    return offsets(yard.read(f"{yard.name}-out"), partition)


def letters(yard: Yard) -> list[tuple[int, str]]:
    return [(found.letter.message.offset, found.letter.code) for found in yard.look(wrong(yard)).letters]


async def replayed(yard: Yard, settings: Settings, wanted: LetterFilter | None = None) -> ReplayReport:
    """Run a replay next to the owner, as a separate command."""
    return await asyncio.to_thread(yard.replay, settings, wanted)


def good(row: int, table: str = "t") -> bytes:
    return update(row, both=False, table=table)


def ls(settings: Settings, directory: Path) -> str:
    """Return the output of `translator dlq ls`."""
    file = directory / "translator.yaml"
    file.write_text(settings.model_dump_json(), encoding="utf-8")  # JSON is YAML
    ran = CliRunner().invoke(dlq, ["ls", "-c", str(file)])
    assert 0 == ran.exit_code, ran.output
    return ran.output


@pytest.mark.usefixtures("short_silence")
def test_what_follows_is_held_and_comes_back_in_order(yard: Yard, tmp_path: Path) -> None:
    """Only the table waits, even over a restart. A replay releases it, and the next message is written."""
    yard.feed(0, good(1), update(1), good(1), good(1, "u"), good(1))
    yard.feed(1, good(1))

    async def life() -> None:
        async with owner(yard, wrong(yard)) as first:
            await first.read(0, 1)
            assert ([0, 3], [0]) == (canonical(yard), canonical(yard, 1))
            assert [(1, "AMBIGUOUS_VARIANT"), (2, "HELD"), (4, "HELD")] == letters(yard)
            assert 1 == first.components.holds.count
            listed = await asyncio.to_thread(ls, wrong(yard), tmp_path)
            assert (
                f"held: table 'shop.t' of topic {yard.raw}, partition 0, since offset 1 (AMBIGUOUS_VARIANT)" in listed
            )
        yard.feed(0, good(2), good(2, "u"))
        async with owner(yard, wrong(yard), begin=3) as second:
            await second.read(0)
            assert [0, 3, 3, 6] == canonical(yard), "what comes before the hold, or is of another table, is not held"
            report = await replayed(yard, corrected(yard))
            assert [0, 3, 3, 6, 1, 2, 4, 5] == canonical(yard)
            assert [("t", 0)] == [(of.table.table, of.partition) for of in report.caught_up if of.table]
            await second.informed()
            yard.feed(0, good(3))
            await second.read(0)
            assert ([0, 3, 3, 6, 1, 2, 4, 5, 7], 0) == (canonical(yard), second.components.holds.count)
        async with owner(yard, wrong(yard), begin=8) as third:
            yard.feed(0, good(4))
            await third.read(0)
            assert (8, {}) == (canonical(yard)[-1], third.components.holds.marks)

    asyncio.run(life())


@pytest.mark.usefixtures("short_silence")
def test_a_message_of_which_no_table_is_known(yard: Yard) -> None:
    """It is unknown whose change is missing, so the whole partition waits, and no other."""
    yard.feed(0, good(1), b"{]", good(1), good(1, "u"))
    yard.feed(1, good(1))

    async def life() -> None:
        async with owner(yard, wrong(yard)) as first:
            await first.read(0, 1)
            assert ([0], [0]) == (canonical(yard), canonical(yard, 1))
            assert [(1, "MALFORMED_JSON"), (2, "HELD"), (3, "HELD")] == letters(yard)
            blocked = await replayed(yard, corrected(yard))
            assert [0] == canonical(yard), "what stays dead is not overtaken"
            assert (2, {}) == (blocked.still["shop", "HELD", "HELD"], dict.fromkeys(blocked.caught_up))
            given_up = yard.settings(CLEAR, on_error={"AMBIGUOUS_VARIANT": "hold_table"})
            await replayed(yard, given_up)
            await first.informed()
            yard.feed(0, good(2))
            await first.read(0)
            assert ([0, 2, 3, 4], 0) == (canonical(yard), first.components.holds.count)

    asyncio.run(life())


@pytest.mark.usefixtures("short_silence")
def test_a_message_of_two_tables(yard: Yard) -> None:
    """The message is held as a whole. Its other table misses a change and is held from there on."""
    yard.feed(0, update(1), good(1, "u"), good(1) + b"\n" + good(2, "u"), good(3, "u"), good(3, "v"))
    batches = {"newline_batches": True}
    yard.translate(yard.settings({**AMBIGUOUS, **batches}, on_error=HOLD))
    assert [1, 4] == canonical(yard)
    assert [(0, "AMBIGUOUS_VARIANT"), (2, "HELD"), (3, "HELD")] == letters(yard)
    yard.replay(yard.settings({**AMBIGUOUS, **batches}, on_error=HOLD))
    assert [1, 4] == canonical(yard), "a replay spreads it as well"
    yard.replay(yard.settings({**CLEAR, **batches}, on_error=HOLD))
    assert [1, 4, 0, 2, 2, 3] == canonical(yard)


@pytest.mark.usefixtures("short_silence")
def test_a_part_of_the_letters_overtakes_none(yard: Yard) -> None:
    """Letters skipped by a filter or limit are not overtaken, and the table remains held."""
    yard.feed(0, update(1), good(1), good(1), good(1, "u"))
    yard.translate(wrong(yard))
    yard.replay(corrected(yard), LetterFilter(codes=["HELD"]))
    assert [3] == canonical(yard)
    first = yard.replay(corrected(yard), LetterFilter(limit=2))
    assert ([3, 0, 1], 1, 0) == (canonical(yard), len(first.held), len(first.caught_up))
    assert 1 == len(yard.replay(corrected(yard)).caught_up)
    assert [3, 0, 1, 2] == canonical(yard)


@pytest.mark.usefixtures("short_silence")
def test_a_topic_that_was_made_again(yard: Yard) -> None:
    """Nobody owns a partition of the old topic, so its replay ends the hold. The new topic was never held."""
    yard.feed(0, update(1), good(1))
    yard.translate(wrong(yard))
    yard.make_raw_again()
    yard.feed(0, good(2))
    yard.translate(wrong(yard))
    assert [0] == canonical(yard)
    yard.replay(corrected(yard))
    assert ([0, 0, 1], {}) == (canonical(yard), yard.look(wrong(yard)).held)


def test_the_next_owner_knows_before_it_reads(yard: Yard) -> None:
    """A new owner first reads what a former owner wrote to the metadata topic, however late it arrives."""
    yard.feed(0, update(1), good(1))

    async def life() -> None:
        async with owner(yard, wrong(yard), begin=2, follows=False) as second, owner(yard, wrong(yard)) as first:
            await first.read(0)
            yard.feed(0, good(1))
            taking_over = asyncio.create_task(second.read(0))
            while second.components.delivery.batches == 0:
                await asyncio.wait({taking_over}, timeout=0.05)
            await asyncio.wait({taking_over}, timeout=0.3)
            assert not taking_over.done()
            second.follow()
            await taking_over
            assert [] == canonical(yard)

    asyncio.run(life())


@pytest.mark.parametrize("killed", [False, True])
def test_messages_that_arrive_while_it_is_replayed(yard: Yard, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    """The owner gets the table back without a pause, and each event is written in order, even after a crash."""
    monkeypatch.setattr("translator.operations.dlq.replay.AT_ONCE", 7)
    monkeypatch.setattr("translator.operations.dlq.replay.SILENCE", 600.0)  # the owner is there, if slow
    yard.feed(0, update(1), *(good(row) for row in range(30)))

    async def life() -> None:
        async with owner(yard, wrong(yard)) as first:
            await first.read(0)
            if killed:
                with monkeypatch.context() as patched:
                    patched.setattr("translator.operations.dlq.replay._Replay._replay_letter", _dying_after(17))
                    with pytest.raises(_Killed):
                        await replayed(yard, corrected(yard))
            replay = asyncio.create_task(replayed(yard, corrected(yard)))
            await _feed_until(first, yard, replay)
            assert {} == replay.result().held
        records = yard.read(f"{yard.name}-out")
        found = offsets(record for record in records if record.key().startswith(b'["shop","shop",null,"t"'))
        assert [*range(31), *range(31, found[-1] + 1, 2)] == in_order(found)
        assert 0 == first.components.holds.count
        assert found[-1] not in [offset for offset, _ in letters(yard)], "the last one came straight"

    asyncio.run(life())


class _Killed(Exception):
    pass


def _dying_after(count: int) -> Any:
    from translator.operations.dlq.replay import _Replay

    done: list[int] = []
    replay = _Replay._replay_letter

    async def any_(self: Any, twins: Any) -> None:
        done.append(1)
        if len(done) > count:
            raise _Killed
        await replay(self, twins)

    return any_


async def _feed_until(first: Owner, yard: Yard, replay: asyncio.Task[ReplayReport]) -> None:
    row = 100
    while not replay.done():
        await asyncio.to_thread(yard.feed, 0, good(row), good(row, "u"))
        await first.read(0)
        row += 1
    await asyncio.to_thread(yard.feed, 0, good(row))
    await first.read(0)
