"""`python -m tests.chaos.soak` runs one worker for a quarter of an hour at 80 % of its capacity.

It first measures the peak: messages are fed as fast as the worker processes a backlog. Throughput is measured during
feeding, because the feeder and broker always use part of the CPU. Then it feeds messages at 80 % of the peak and
watches memory and the age of the oldest uncommitted record. Memory is flat if the last third uses at most a few per
cent more than the middle third. The age is bounded if it never exceeds `AGE_SECONDS`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from dev.servers.broker import Broker
from tests.chaos import verify
from tests.chaos.cases import Case, Size
from tests.chaos.memory import growth, resident
from tests.chaos.run import Run

LOAD = 0.8
GROWTH = 0.05
AGE_SECONDS = 15.0
_BACKLOG = 100_000
_PEAK_SECONDS = 60.0
_EVERY = 5.0


@dataclass
class Soak:
    """The measurements."""

    peak: float  # messages per second
    fed: int
    memory: list[float]  # MiB, every few seconds
    ages: list[tuple[float, float]]  # (time, seconds), a few times per second
    out_of_place: int
    codes: list[int]

    @property
    def growth(self) -> float:
        return growth(self.memory)

    @property
    def worst(self) -> list[float]:
        """Return the greatest age in each minute."""
        minutes: dict[int, float] = {}
        for at, age in self.ages:
            minute = int(at - self.ages[0][0]) // 60
            minutes[minute] = max(age, minutes.get(minute, 0.0))
        return list(minutes.values())

    @property
    def good(self) -> bool:
        return self.growth < GROWTH and max(self.worst) < AGE_SECONDS and not self.out_of_place and self.codes == [0]

    def __str__(self) -> str:
        middle, age = statistics.median(self.memory), statistics.median(age for _, age in self.ages)
        return (
            f"peak {self.peak:.0f} messages/s, fed {self.fed} at {LOAD:.0%} of it; memory {self.memory[0]:.0f} MiB at "
            f"first, median {middle:.0f}, last {self.memory[-1]:.0f}, growth of the last third {self.growth:+.1%}; "
            f"age of commits median {age:.1f} s, most {max(self.worst):.1f} s, "
            f"by minute {' '.join(f'{age:.1f}' for age in self.worst)}; "
            f"{self.out_of_place} events missing, twice or out of order; exit codes {self.codes}"
        )


def soak(broker: Broker, seconds: float) -> Soak:
    """Feed, watch and count."""
    case = Case("soak", "", lambda run: None, Size({}))
    run = Run(case, Size({}, messages=_BACKLOG, head=1.0, rate=1), broker, "at_least_once", seed=1)
    try:
        run.start_feeding()
        run.feeder.enough()
        worker = run.worker()
        run.progress.wait("the backlog", seconds=120)
        backlog = _rate(run, run.wait_caught_up)
        run.feed_more(head=0, rate=backlog)
        fed = _BACKLOG
        run.progress.wait("messages that are fed meanwhile")
        peak = _rate(run, lambda: time.sleep(_PEAK_SECONDS))
        run.say(f"peak: {backlog:.0f} messages/s of a backlog, {peak:.0f} while as many are fed")
        run.feeder.enough()
        fed += run.feeder.count
        run.wait_caught_up()
        from_here = len(run.progress.samples)
        run.feed_more(head=0, rate=LOAD * peak)
        memory = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_EVERY)
            memory.append(resident(worker.pid))
        run.feeder.enough()
        run.wait_caught_up()
        ages = run.progress.commit_ages()[from_here:]
        worker.stop()
        return Soak(peak, fed + run.feeder.count, memory, ages, _out_of_place(run), worker.codes)
    finally:
        run.close(keep=False)


def _rate(run: Run, while_this: Callable[[], None]) -> float:
    """Return the messages per second that are committed meanwhile."""
    began, before = time.monotonic(), sum(run.progress.committed().values())
    while_this()
    return (sum(run.progress.committed().values()) - before) / (time.monotonic() - began)


def _out_of_place(run: Run) -> int:
    """Check the order: without faults, the events of a raw partition match its records one to one."""
    reached = dict.fromkeys(run.progress.committed(), 0)
    wrong = 0
    for record in verify.records(run.servers.bootstrap, run.canonical):
        _, _, partition, offset, _ = dict(record.headers())["cdc-id"].decode().split("/")
        wrong += reached[int(partition)] != int(offset)
        reached[int(partition)] = int(offset) + 1
    return wrong + sum(end != reached[number] for number, end in run.progress.committed().items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description="Runs one worker for a long time.")
    parser.add_argument("--seconds", type=float, default=900)
    arguments = parser.parse_args()
    # The feeder keeps millions of acknowledgements. Iterating over them repeatedly would distort the measurement.
    gc.disable()
    with Broker() as broker:
        found = soak(broker, arguments.seconds)
    print(f"{found}: {'passed' if found.good else 'FAILED'}")
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
