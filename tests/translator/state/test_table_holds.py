"""Holds of one partition, without a broker: when they begin, what they affect, and when they end."""

import asyncio
from typing import Any

from translator.message import Message, TableName
from translator.state.table_holds import TABLES, HeldTable, HoldMark, Holds, caught_up

PLACE = ("raw", 0)
T, U = TableName("shop", None, "t"), TableName("shop", "a", "u")


def message(offset: int) -> Message:
    return Message("raw", 0, offset, 0, None, b"", (), "id")


async def nothing() -> None:
    """Wait for nothing."""


async def held(offset: int, *tables: TableName) -> tuple[Holds, Any]:
    holds = Holds()
    await holds.take_over(PLACE, "id", 0)
    return holds, await hold(holds, offset, *tables)


async def hold(holds: Holds, offset: int, *tables: TableName) -> Any:
    return await holds.hold(message(offset), tables or None, HoldMark(offset, "HELD", "s", "0"), nothing)


def say(holds: Holds, table: TableName | None, read: int, *, fresh: bool = True, letters_id: str = "") -> None:
    record = caught_up(HeldTable("raw", "id", 0, table), letters_id, read)
    assert holds.apply_state_record((record.key or b"").decode(), record.value, fresh=fresh)


async def stands(holds: Holds, offset: int, *tables: TableName) -> bool:
    """Return whether the table is held. Fail if it would have to wait."""

    async def pause() -> None:
        raise AssertionError("it waits")

    return await holds.stands_before(message(offset), tables, pause) is not None


def test_whom_a_hold_concerns() -> None:
    """A hold affects only later messages of its table, not earlier ones, other tables or messages without one."""

    async def life() -> None:
        holds, _ = await held(5, T)
        assert [False, False, True] == [await stands(holds, offset, T) for offset in (4, 5, 6)]
        assert [False, False, True] == [await stands(holds, 6, *tables) for tables in ((U,), (), (U, T))]
        await hold(holds, 3, T)
        assert [False, True] == [await stands(holds, offset, T) for offset in (3, 4)], "an earlier one holds earlier"
        await hold(holds, 7)
        assert [False, True] == [await stands(holds, offset, U) for offset in (7, 8)], "of no known table: all"
        holds.forget()
        assert not await stands(holds, 9, T)

    asyncio.run(life())


def test_names_have_a_bound() -> None:
    """Names come from messages. If there are too many, the whole partition is held."""

    async def life() -> None:
        distinct = [TableName(T.db, str(n), T.table) for n in range(TABLES + 1)]
        holds, _ = await held(5, *distinct)
        assert (1, True) == (holds.count, await stands(holds, 6, U))

    asyncio.run(life())


def test_when_it_ends() -> None:
    """A hold ends when a replay has read past the last letter of its dead-letter topic and none is in progress."""

    async def life() -> None:
        holds, delivered = await held(5, T)
        say(holds, T, 1_000, fresh=False)
        assert await stands(holds, 6, T), "its letter is not delivered"
        delivered(20)
        for read, letters_id in ((20, ""), (21, "another")):
            say(holds, T, read, fresh=False, letters_id=letters_id)
            assert await stands(holds, 6, T)
        say(holds, T, 21, fresh=False)
        assert (False, 0) == (await stands(holds, 6, T), holds.count)

    asyncio.run(life())


def test_a_replay_at_work_is_waited_for() -> None:
    """Each message of the replay extends the wait. Messages from before the start of the process do not."""

    async def life() -> None:
        holds, delivered = await held(5, T)
        delivered(20)
        say(holds, T, 10, fresh=False)
        assert await stands(holds, 6, T)
        say(holds, T, 10)
        pauses: list[int] = []

        async def pause() -> None:
            pauses.append(1)
            say(holds, T, 18 + len(pauses))

        assert None is await holds.stands_before(message(6), (T,), pause)
        assert 3 == len(pauses)

    asyncio.run(life())


def test_a_table_that_a_former_owner_held() -> None:
    """The position of its last letter is unknown, so the end of the dead-letter partition is used."""

    class Behind:
        letters_id = ""
        confirm = staticmethod(lambda record: nothing())
        synced = staticmethod(nothing)

        async def end_of_letters(self, partition: int) -> int:
            return 40

    async def life() -> None:
        holds = Holds(Behind())
        key = "!held/" + HeldTable("raw", "id", 0, T).name
        assert holds.apply_state_record(key, b'{"since":5,"code":"HELD","source":"s","version":"0"}', fresh=False)
        assert not holds.apply_state_record("source/id", b"", fresh=False)
        await holds.take_over(PLACE, "another", 0)
        assert not await stands(holds, 6, T), "that was another topic of this name"
        holds.forget()
        await holds.take_over(PLACE, "id", 0)
        say(holds, T, 39, fresh=False)
        assert await stands(holds, 6, T)
        say(holds, T, 40, fresh=False)
        assert not await stands(holds, 6, T)

    asyncio.run(life())
