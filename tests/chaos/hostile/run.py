"""One run: the shops' histories, with hostile messages in the same raw topics."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dev.demo.sources import ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw
from dev.servers.broker import Broker
from dev.servers.stack import Stack, StackError, descendants, wait_until
from tests.chaos.hostile.writer import FORMATS, HostileWriter
from tests.chaos.memory import growth, resident

SECONDS = 900.0
"""Seconds that only a hang exceeds."""

_EVERY = 2.0
_PROGRAMS = ("translator", "spark-sink")


@dataclass
class Verdict:
    """The result of a run. Its lists are empty if nothing hostile had an effect on anything else."""

    messages: int = 0
    account: Counter[str] = field(default_factory=Counter)
    parked: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    memory: dict[str, list[float]] = field(default_factory=dict)
    """By program: MiB every two seconds, with its children."""

    @property
    def growth(self) -> dict[str, float]:
        """The growth of each program's memory from the middle third of the run to the last one."""
        return {name: growth(samples) if len(samples) >= 3 else 0.0 for name, samples in self.memory.items()}

    def __str__(self) -> str:
        grown = {name: f"{max(self.memory[name]):.0f} MiB, {share:+.1%}" for name, share in self.growth.items()}
        return (
            f"{self.messages} hostile messages: {dict(self.account)}; {len(self.parked)} hostile tables parked; "
            f"memory {grown}; wrong: {self.wrong}"
        )


def run(broker: Broker, directory: Path, count: int, seed: int, changes: int = 600) -> Verdict:
    """Feed `count` hostile messages in each format while five shops make changes."""
    sources = shop_sources(seed)
    stack = Stack(broker.bootstrap, directory, [source.settings for source in sources])
    stack.change("translator", timing={"metadata_wait": 2})
    verdict = Verdict(memory={name: [] for name in _PROGRAMS})
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(stack, verdict, ended), daemon=True)
    fed: Counter[tuple[str, int]] = Counter()

    def wave(messages: Iterator[Raw]) -> None:
        for place, counts in stack.feed(messages).items():
            fed[place] += counts["in"]
        wait_until("all is committed", SECONDS, lambda: _committed(stack, fed), stack)
        wait_until("the tables are right", SECONDS, lambda: not _wrong(stack, sources), stack)

    def shops() -> Iterator[Raw]:
        return interleaved([source.messages(changes, grow=False) for source in sources])

    try:
        stack.create_raw_topics()
        for program in _PROGRAMS:
            stack.start(program)
        # The tables of the shops exist first, because the first of two tables with one name keeps it. In the end, the
        # last changes follow all hostile messages in every partition.
        wave(shops())
        watcher.start()
        hostile = HostileWriter(seed).messages(count)
        verdict.messages = FORMATS * count
        wave(_mixed(hostile, shops(), FORMATS * count // (len(sources) * changes)))
        wave(shops())
    except StackError as error:
        verdict.wrong.append(str(error))
    finally:
        ended.set()
        _judge(stack, sources, fed, verdict)
        stack.close()
    return verdict


def _mixed(hostile: Iterator[Raw], good: Iterator[Raw], share: int) -> Iterator[Raw]:
    """Return all messages, with this many hostile ones before each good one."""
    for message in good:
        yield from islice(hostile, share)
        yield message
    yield from hostile


def _committed(stack: Stack, fed: Counter[tuple[str, int]]) -> bool:
    committed = stack.committed()
    return all(committed.get(place, 0) >= count for place, count in fed.items())


def _wrong(stack: Stack, sources: list[ShopSource]) -> list[str]:
    return [line for source in sources for line in source.wrong(stack.rows)]


def _judge(stack: Stack, sources: list[ShopSource], fed: Counter[tuple[str, int]], verdict: Verdict) -> None:
    verdict.wrong += _wrong(stack, sources)[:20]
    shops = {source.table(name) for source in sources for name in source.shop.rows}
    for line in _log(stack, "spark-sink"):
        if line.get("event") == "table parked":
            verdict.parked.add(line["table"])
    verdict.wrong += [f"{name} is parked" for name in sorted(verdict.parked & shops)]
    verdict.wrong += [str(line) for line in _log(stack, "translator") if line.get("event") == "partition stopped"]
    verdict.wrong += [str(line) for name in _PROGRAMS for line in _log(stack, name) if line.get("level") == "critical"]
    account = stack.account()
    for place, count in fed.items():
        counts = account.get(place, Counter())
        verdict.account += counts
        outcomes = sum(counts[word] for word in ("translated", "dead", "skipped", "learned"))
        if not counts["in"] == outcomes == count:
            verdict.wrong.append(f"{place}: {count} fed, {dict(counts)}")


def _log(stack: Stack, program: str) -> Iterator[dict[str, Any]]:
    for line in stack.log(program).read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _watch(stack: Stack, verdict: Verdict, ended: threading.Event) -> None:
    while not ended.wait(_EVERY):
        for name in _PROGRAMS:
            pid = stack.pid(name)
            used = 0.0
            for member in (pid, *descendants(pid)):
                with suppress(OSError):  # it has just ended
                    used += resident(member)
            verdict.memory[name].append(used)
