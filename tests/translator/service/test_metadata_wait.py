"""Messages that need missing metadata: how they wait, and how the wait ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.translator.service._lessons import BUG, HOSTILE, Lessons
from tests.translator.service._pipeline import PARTITION, Bench, Record, record, soon
from translator.errors import ConfigError, RetryableError
from translator.service import metadata_wait

OTHER = (PARTITION + 1) % 4
"""The canonical partition of raw partition 4."""


class Registry:
    """Answers for schema ids in turn. The last one repeats forever."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self._answers = list(answers)
        self.asked: list[int] = []

    def __call__(self, schema_id: int) -> str | None:
        self.asked.append(schema_id)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def make(registry: Registry | None = None) -> Bench:
    """Return a pipeline for `Lessons`."""
    return Bench(Lessons, fetch=registry)


def need(offset: int, key: str = "k", schema_id: int | None = None) -> Record:
    return record(offset, {"need": key} if schema_id is None else {"need": key, "id": schema_id})


def teach(offset: int, text: str = "text", key: str = "k", **more: str) -> Record:
    return record(offset, {"teach": key, "text": text, **more})


def written(bench: Bench, partition: int = PARTITION) -> list[tuple[int, Any]]:
    """Return the raw offset and learned text of the rows in a canonical partition."""
    events = [json.loads(event.value()) for event in bench.read(bench.output.topic, partition)]
    return [(event["origin"]["offset"], event["after"]["by"]) for event in events]


def letters(bench: Bench) -> list[tuple[str, str]]:
    """Return the codes and reasons of the dead letters."""
    found = [dict(letter.headers()) for letter in bench.read(bench.output.dead_letter_topic, PARTITION)]
    return [(head["cdc-error-code"].decode(), head["cdc-error-message"].decode()) for head in found]


def scenario(steps: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await steps()

    asyncio.run(run())


class TestGivenAway:
    def test_a_wait_ends(self) -> None:
        """A revoked partition gives back its batch and later ones, unacknowledged. Others finish."""
        bench = make()
        bench.waiter._seconds = 600  # no test may wait this long

        async def steps() -> None:
            first = asyncio.create_task(bench.process(3, [teach(0, key="other"), need(1, "other"), need(2), need(3)]))
            await soon(lambda: bench.waiter.waiting == 1)
            bench.pipeline.cancel_waits()
            assert not await asyncio.wait_for(first, 60)
            assert not await bench.process(3, [need(4, "other")])
            assert await bench.process(4, [need(0, "other")])
            await bench.acknowledged(1)

        scenario(steps)
        assert [(1, "text")] == written(bench)
        assert [(0, "text")] == written(bench, OTHER)
        assert [] == letters(bench)
        assert [1] == [account.records for account in bench.accounted]
        assert 0 == bench.delivery.batches

    def test_the_next_owner_begins_anew(self) -> None:
        """The next owner reads these messages again, and duplicates have the same bytes."""
        bench = make()
        bench.waiter._seconds = 600
        batch = [teach(0, key="other"), need(1, "other"), need(2)]

        async def steps() -> None:
            first = asyncio.create_task(bench.process(3, batch))
            await soon(lambda: bench.waiter.waiting == 1)
            bench.pipeline.cancel_waits()
            assert not await first
            bench.pipeline.forget()
            again = asyncio.create_task(bench.run(batch))
            await bench.process(4, [teach(0)])
            await again

        scenario(steps)
        assert [(1, "text"), (1, "text"), (2, "text")] == written(bench)
        events = bench.read(bench.output.topic, PARTITION)
        assert events[0].value() == events[1].value()

    def test_while_the_registry_is_asked(self) -> None:
        """A slow or unreachable registry does not delay the release of a partition."""
        bench = make(Registry(RetryableError("down")))

        async def steps() -> None:
            waiting = asyncio.create_task(bench.process(3, [need(0, "7", 7)]))
            await soon(lambda: len(bench.said) > 0)
            bench.pipeline.cancel_waits()
            assert not await asyncio.wait_for(waiting, 60)

        scenario(steps)
        assert [] == letters(bench)


class TestGivenUp:
    def test_until_it_is_learned(self) -> None:
        """After one failed wait, messages do not wait until the metadata arrives. Then they are translated again."""
        bench = make()
        scenario(lambda: bench.run([need(0), need(1), teach(2), need(3)]))
        assert ["SCHEMA_MISSING"] * 2 == [code for code, _ in letters(bench)]
        assert [(3, "text")] == written(bench)

    def test_other_partitions_go_on(self) -> None:
        """A wait blocks only its own partition."""
        bench = make()
        bench.waiter._seconds = 600

        async def steps() -> None:
            waiting = asyncio.create_task(bench.process(3, [need(0)]))
            await soon(lambda: bench.waiter.waiting == 1)
            await bench.process(4, [teach(0, key="other"), need(1, "other")])
            await bench.acknowledged(1)
            assert not waiting.done()
            await bench.process(5, [teach(0)])
            assert await waiting

        scenario(steps)


class TestRegistry:
    def test_asked_once(self) -> None:
        """The registry's schema is learned once, and no message of any partition requests it again."""
        registry = Registry("text")
        bench = make(registry)

        async def steps() -> None:
            await asyncio.gather(bench.process(3, [need(0, "7", 7)]), bench.process(4, [need(0, "7", 7)]))
            await bench.run([need(1, "7", 7), need(2, "7", 7)])

        scenario(steps)
        assert [7] == registry.asked
        assert [(0, "text"), (1, "text"), (2, "text")] == written(bench)
        assert [] == bench.read(bench.output.metadata_topic, 0), "the registry keeps it"

    def test_down(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """While the registry is down, messages wait beyond the time limit and never become dead letters."""
        monkeypatch.setattr(metadata_wait, "_FIRST_PAUSE", 0.4)
        bench = make(Registry(*[RetryableError("Connection refused")] * 3, "text"))
        scenario(lambda: bench.run([need(0, "7", 7)]))
        assert [(0, "text")] == written(bench)
        assert [] == letters(bench)
        assert 3 == len(bench.said)
        assert "waiting for the schema registry to return schema 7: Connection refused" == bench.said[0]

    def test_registered_in_time(self) -> None:
        """An initially unknown id is requested again while its message waits."""
        registry = Registry(None, "text")
        bench = make(registry)
        bench.waiter._seconds = 600
        scenario(lambda: bench.run([need(0, "7", 7)]))
        assert [7, 7] == registry.asked
        assert [(0, "text")] == written(bench)

    def test_unknown(self) -> None:
        """An id unknown for the whole time limit leads to a dead letter. Later messages do not request it each time."""
        registry = Registry(None)
        bench = make(registry)
        scenario(lambda: bench.run([need(offset, "7", 7) for offset in range(50)]))
        assert len(registry.asked) <= 5
        assert 50 == len(letters(bench))
        code, reason = letters(bench)[0]
        assert "SCHEMA_MISSING" == code
        assert (
            "lessons: schema 7 is not in the schema registry. Check that registry.url is the writer's registry"
            in reason
        )

    def test_registered_late(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a failed wait, the id is requested occasionally without waiting, so no restart is needed."""
        monkeypatch.setattr(metadata_wait, "ASK_AGAIN", 0)
        registry = Registry(*[None] * 4, "text")
        bench = make(registry)
        bench.waiter._seconds = 0
        scenario(lambda: bench.run([need(offset, "7", 7) for offset in range(5)]))
        assert [(4, "text")] == written(bench)
        assert [7] * 5 == registry.asked

    def test_hostile(self) -> None:
        """Every message that needs a rejected schema becomes a dead letter. The schema is requested once."""
        registry = Registry(HOSTILE)
        bench = make(registry)
        scenario(lambda: bench.run([need(0, "7", 7), need(1, "7", 7)]))
        assert [7] == registry.asked
        assert [HOSTILE] == bench.dialect.read  # type: ignore[attr-defined]  # ours
        (first, _) = letters(bench)
        assert "LIMIT_EXCEEDED" == first[0]
        assert "nested too deep" in first[1]

    def test_unforeseen(self) -> None:
        """If a schema crashes our code, the error is INTERNAL without the exception's text. The process continues."""
        bench = make(Registry(BUG))
        scenario(lambda: bench.run([need(0, "7", 7)]))
        ((code, reason),) = letters(bench)
        assert "INTERNAL" == code
        assert "ValueError in translation/metadata_catalog.py:" in reason
        assert BUG not in reason

    def test_refused(self) -> None:
        """A wrong login is for the operator to fix, so the process stops and no message is dead."""
        bench = make(Registry(ConfigError("status 401")))
        with pytest.raises(ConfigError, match="status 401"):
            scenario(lambda: bench.run([need(0, "7", 7)]))
        assert [] == letters(bench)

    def test_none(self) -> None:
        """Without a registry, the message is dead immediately, and the reason names the setting."""
        bench = make(None)
        bench.waiter._seconds = 600
        scenario(lambda: bench.run([need(0, "7", 7)]))
        ((code, reason),) = letters(bench)
        assert "SCHEMA_MISSING" == code
        assert "schema 7 is in a schema registry, but none is configured: set registry.url" in reason


def test_keys_without_end() -> None:
    """A source whose metadata did not come a few times no longer waits for other keys, and a key that is known is read
    as before.
    """
    bench = make()
    keys = [f"k{number}" for number in range(metadata_wait.MISSES + 5)]

    async def steps() -> None:
        bench.waiter._seconds = 0.0
        await bench.run([need(offset, key) for offset, key in enumerate(keys[: metadata_wait.MISSES])])
        bench.waiter._seconds = 600  # a wait would end by the limit below
        rest = [need(offset, key) for offset, key in enumerate(keys[metadata_wait.MISSES :], 50)]
        await asyncio.wait_for(bench.run([*rest, teach(100, key="new"), need(101, "new")]), 60)

    scenario(steps)
    assert ["SCHEMA_MISSING"] * len(keys) == [code for code, _ in letters(bench)]
    assert [101] == [offset for offset, _ in written(bench)]


def test_after_a_while_a_source_waits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata can also be late for another reason."""
    monkeypatch.setattr(metadata_wait, "MISSES_SECONDS", 0.0)
    bench = make()

    async def steps() -> None:
        bench.waiter._seconds = 0.0
        await bench.run([need(offset, f"k{offset}") for offset in range(metadata_wait.MISSES)])
        bench.waiter._seconds = 600
        late = asyncio.create_task(bench.process(3, [need(50, "late")]))
        await soon(lambda: bench.waiter.waiting == 1)
        await bench.process(4, [teach(0, key="late")])
        assert await asyncio.wait_for(late, 60)

    scenario(steps)
    assert metadata_wait.MISSES == len(letters(bench))
