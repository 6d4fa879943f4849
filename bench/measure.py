"""Measure the CPU time of this process: the best of several rounds, in alternating order."""

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
    """Return each contestant's best time in microseconds per item.

    Contestants take turns in alternating order, so that any other load affects all of them. In every round, each
    contestant gets new items, which are created before the clock starts. Python caches the hash of a string, so
    repeated work on the same items would be cheaper. The garbage collector stays enabled, as in the service.
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
    """Return a one-line description of the machine, without its name or any paths."""
    parts = [f"{platform.python_implementation()} {platform.python_version()}"]
    parts += [f"{package} {version(package)}" for package in packages]
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors ({platform.machine()})"
    return ", ".join([*parts, busy])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. All columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rate(microseconds: float) -> str:
    """Format a rate per second, in thousands."""
    return f"{1000 / microseconds:.0f} k/s"
