"""`python -m tests.chaos.sink` kills the sink at every point, with several seeds, and prints a row for each point."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random

from dev.servers.broker import Broker
from tests.chaos.sink.points import POINTS
from tests.chaos.sink.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.sink", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("points", nargs="*", metavar="POINT", help="all when none is named")
    arguments = parser.parse_args()
    if unknown := set(arguments.points) - POINTS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(POINTS)}")
    killed: Counter[str] = Counter()
    events, missed, wrong = 0, 0, []
    with Broker() as broker:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            dice = Random(seed)
            deaths = [(point, dice.randint(1, 3)) for point in arguments.points or POINTS]
            dice.shuffle(deaths)
            verdict = run(broker.bootstrap, seed, deaths)
            killed.update(point for point, _ in verdict.killed)
            events += verdict.events
            wrong += verdict.wrong
            missed += len(verdict.missed)
            print(f"seed {seed}: {verdict.events} events, killed {len(verdict.killed)} times", flush=True)
            for told in (*(f"not met: {point} ({number})" for point, number in verdict.missed), *verdict.wrong):
                print(f"  {told}", flush=True)
    failures = f"{missed} points not met, {len(wrong)} tables wrong"
    print(f"\n{arguments.seeds} runs, {events} events, {killed.total()} kills, {failures}")
    print("| killed | times |\n|---|---|")
    for point in arguments.points or POINTS:
        print(f"| {point} | {killed[point]} |")
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    sys.exit(main())
