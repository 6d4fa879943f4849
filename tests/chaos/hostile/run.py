"""One run: the shops' histories, with hostile messages in the same raw topics."""

from __future__ import annotations

import json
import os
import statistics
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from dev.demo.compare import differences
from dev.demo.sources import ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw
from dev.servers.broker import Broker
from dev.servers.stack import Stack, StackError, descendants, wait_until
from tests.chaos.hostile.writer import HostileWriter

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
        return {name: _growth(samples) for name, samples in self.memory.items()}

    def __str__(self) -> str:
        grown = {name: f"{max(self.memory[name]):.0f} MiB, {growth:+.1%}" for name, growth in self.growth.items()}
        return (
            f"{self.messages} hostile messages: {dict(self.account)}; {len(self.parked)} hostile tables parked; "
            f"memory {grown}; wrong: {self.wrong}"
        )


def run(broker: Broker, directory: Path, count: int, seed: int, changes: int = 600) -> Verdict:
    """Feed `count` hostile messages in each format while five shops make changes."""
    sources = shop_sources(seed)
    stack = Stack(broker.bootstrap, directory, [source.settings for source in sources])
    _change(directory / "translator.yaml", timing={"metadata_wait": 2})
    verdict = Verdict(memory={name: [] for name in _PROGRAMS})
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(stack, verdict, ended), daemon=True)
    fed: Counter[tuple[str, int]] = Counter()

    def wave(messages: Iterator[Raw]) -> None:
        for place, counts in stack.feed(messages).items():
            fed[place] += counts["in"]
        wait_until("all is committed", SECONDS, lambda: _committed(stack, fed), stack)
        wait_until("the tables are right", SECONDS, lambda: not [*_wrong(stack, sources)], stack)

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
        verdict.messages = 4 * count
        wave(_mixed(hostile, shops(), 4 * count // (5 * changes)))
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


def _wrong(stack: Stack, sources: list[ShopSource]) -> Iterator[str]:
    for source in sources:
        for name, rows in source.shop.rows.items():
            table = f"{source.prefix}.{name}"
            for line in differences(source.shop.shape(name), rows.values(), stack.rows(table)):
                yield f"{table}: {line}"


def _judge(stack: Stack, sources: list[ShopSource], fed: Counter[tuple[str, int]], verdict: Verdict) -> None:
    verdict.wrong += [*_wrong(stack, sources)][:20]
    shops = {f"{source.prefix}.{name}" for source in sources for name in source.shop.rows}
    for line in _log(stack, "spark-sink"):
        if line.get("event") == "table parked":
            verdict.parked.add(line["table"])
    verdict.wrong += [f"{name} is parked" for name in sorted(verdict.parked & shops)]
    verdict.wrong += [str(line) for line in _log(stack, "translator") if line.get("event") == "partition stopped"]
    verdict.wrong += [str(line) for name in _PROGRAMS for line in _log(stack, name) if line.get("level") == "critical"]
    for place, counts in stack.account().items():
        verdict.account += counts
        outcomes = sum(counts[word] for word in ("translated", "dead", "skipped", "learned"))
        if not counts["in"] == outcomes == fed[place]:
            verdict.wrong.append(f"{place}: {fed[place]} fed, {dict(counts)}")


def _log(stack: Stack, program: str) -> Iterator[dict[str, Any]]:
    for line in stack.log(program).read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _watch(stack: Stack, verdict: Verdict, ended: threading.Event) -> None:
    while not ended.wait(_EVERY):
        for name in _PROGRAMS:
            pid = stack.pid(name)
            verdict.memory[name].append(sum(map(_resident, (pid, *descendants(pid)))))


def _resident(pid: int) -> float:
    """Return a process's resident memory in MiB, or 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _growth(samples: list[float]) -> float:
    third = len(samples) // 3
    return statistics.median(samples[-third:]) / statistics.median(samples[third : 2 * third]) - 1 if third else 0.0


def _change(file: Path, **sections: dict[str, Any]) -> None:
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    for name, values in sections.items():
        settings[name] = {**settings.get(name, {}), **values}
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
