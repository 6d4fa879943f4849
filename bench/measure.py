"""Measuring for benchmarks: processor time of this process, the best of several rounds, in alternating order."""

from __future__ import annotations

import gc
import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TypeVar

T = TypeVar("T")


def best_times(
    contestants: Mapping[str, Callable[[T], object]], items: Callable[[], Sequence[T]], rounds: int
) -> dict[str, float]:
    """Microseconds an item that each contestant takes at its best.

    Contestants take turns, from the first to the last and back, so what else goes on in the machine meets all of them.
    Each has items of its own in every round, made before the clock starts: Python keeps the hash of a text, and what
    was worked on once is cheaper the second time. The garbage collector stays on, as in the service.
    """
    best = dict.fromkeys(contestants, math.inf)
    for turn in range(rounds):
        for name in contestants if turn % 2 == 0 else reversed(tuple(contestants)):
            best[name] = min(best[name], _time(contestants[name], items()))
    return best


def _time(contestant: Callable[[T], object], items: Sequence[T]) -> float:
    gc.collect()
    start = time.process_time()
    for item in items:
        contestant(item)
    return (time.process_time() - start) / len(items) * 1e6


def machine(*packages: str) -> str:
    """Describe the machine that the figures depend on, in a line: never a path or a name of it."""
    parts = [f"{platform.python_implementation()} {platform.python_version()}"]
    parts += [f"{package} {version(package)}" for package in packages]
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors ({platform.machine()})"
    return ", ".join([*parts, busy])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rate(microseconds: float) -> str:
    """Format a rate per second, in thousands."""
    return f"{1000 / microseconds:.0f} k/s"
