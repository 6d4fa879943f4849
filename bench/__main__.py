"""Measure the translator and other programs on a real broker, and write a report: `python -m bench`. See `make
bench`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.plan import FULL, RATIOS, SHORT, formats_of, heats, ratio_heats
from bench.report.markdown import write_report
from bench.results import BenchResult, merged
from bench.runner.tournament import Tournament
from dev.servers.broker import Broker

RESULT = "result.json"

_PICTURES = "benchmarks"
"""The folder for the pictures on a page, unless the page itself is in such a folder."""


def main() -> int:
    """Run the command line. The exit code is 1 if a measurement failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the translator and its peers.")
    parser.add_argument(
        "--short",
        action="store_true",
        help="Measure only the bare loop and both delivery modes. This takes a few minutes.",
    )
    parser.add_argument(
        "--ratios",
        action="store_true",
        help="Measure only what the service costs compared with the bare loop. This takes about five minutes.",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="FORMAT", help="Measure only this format. Repeatable."
    )
    parser.add_argument("--columns", type=int, metavar="N", help="Run only the comparison, using N columns.")
    parser.add_argument("--rounds", type=int, metavar="N", help="In comparisons, run each contestant N times.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--out", type=Path, default=Path("build/bench"), help="Folder for the report (default: build/bench)."
    )
    parser.add_argument(
        "--from",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        dest="given",
        help=(
            "Render this result instead of measuring again. Repeat the option to merge several results into one report."
        ),
    )
    parser.add_argument("--page", type=Path, help="Also write the report into its section of this page.")
    arguments = parser.parse_args()
    try:
        formats = formats_of(arguments.only)
    except ValueError as error:
        parser.error(str(error))
    if arguments.columns is not None and arguments.columns < 2:
        parser.error("--columns must be at least 2, for a key and another column")
    if arguments.ratios and (arguments.short or arguments.only or arguments.columns is not None):
        parser.error("--ratios always measures the same cases. It cannot be combined with --short, --only or --columns")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.given:
        result = merged([msgspec.json.decode(path.read_bytes(), type=BenchResult) for path in arguments.given])
    else:
        profile = RATIOS if arguments.ratios else SHORT if arguments.short else FULL
        profile = replace(profile, rounds=arguments.rounds or profile.rounds)
        planned = ratio_heats(profile) if arguments.ratios else heats(profile, formats, arguments.columns)
        with Broker() as broker:
            tournament = Tournament(broker.bootstrap, profile, arguments.seed, _say)
            result = tournament.run(planned)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / RESULT).write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    report = write_report(result, arguments.out)
    if arguments.page is not None:
        folder = arguments.page.parent
        write_report(result, folder if folder.name == _PICTURES else folder / _PICTURES, page=arguments.page)
    _say(f"the report is in {report}")
    failed = [one for one in result.cases if one.failure and not result.contestants[one.case.contestant].missing]
    return 1 if failed else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
