"""`python -m tests.chaos [CASE...]` runs cases of the fault matrix and prints a table row for each."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from dev.servers.broker import Broker
from dev.servers.cluster import Cluster
from tests.chaos.cases import BROKER_SETTINGS, CASES, MATRIX
from tests.chaos.report import COLUMNS, row, store
from tests.chaos.run import Servers, execute


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Runs cases of the fault matrix.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all of the long form when none is named")
    parser.add_argument("--delivery", default="at_least_once", choices=["at_least_once", "exactly_once"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, help="fewer, for a first look; the long form has what the case says")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--table", type=Path, help="write the rows into this page, in the place of those there")
    arguments = parser.parse_args()
    if arguments.list:
        for case in CASES.values():
            print(f"{case.name:18} {case.faults}")
        return 0
    if unknown := set(arguments.cases) - CASES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop the started processes, as after Ctrl-C
    wanted = [CASES[name] for name in arguments.cases] or list(MATRIX)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    outcomes = []
    with ExitStack() as stack:
        servers: dict[int, Servers] = {}
        for case in sorted(wanted, key=lambda case: case.brokers):
            if case.brokers not in servers:
                new = Cluster(BROKER_SETTINGS) if case.brokers > 1 else Broker(settings=BROKER_SETTINGS)
                servers[case.brokers] = stack.enter_context(new)
            size = replace(case.size, messages=arguments.messages) if arguments.messages else case.size
            outcome = execute(case, size, servers[case.brokers], arguments.delivery, arguments.seed)
            outcomes.append(outcome)
            print(row(outcome), flush=True)
            for problem in (outcome.error, *outcome.verdict.examples):
                if problem:
                    print(f"  {problem}", flush=True)
            if arguments.table:
                store(arguments.table, outcome)
            if outcome.error:  # the next case must not depend on the state in which this one left the brokers
                servers.pop(case.brokers).close()
    print("", COLUMNS, *map(row, outcomes), sep="\n")
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
