"""Send messages in all four formats through a real broker, the translator and the sink, and print the tables: `make
demo`.

The demo runs unattended. It exits with code 0 if every table matches its shop. --stay keeps everything running.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dev.demo.bad_input import bad_input
from dev.demo.next_steps import PastedCommand, broker_again
from dev.demo.real_canal import RealCanal
from dev.demo.report import Coordinates, DemoReport
from dev.demo.sources import SHOPS, ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw
from dev.jar_list import WrongJarsError
from dev.jars import JarsError
from dev.servers.broker import Broker
from dev.servers.server import ServerError
from dev.servers.stack import Stack, StackError, read_record_file

SAMPLES = Path(__file__).with_name("samples")
SAMPLE_SOURCES: list[dict[str, Any]] = [
    {"name": "sample_canal", "dialect": "canal", "topics": ["sample.canal"], "options": {"profile": "oss"}},
    {
        "name": "sample_legacy",
        "dialect": "canal",
        "topics": ["sample.canal.legacy"],
        "options": {"profile": "dts_legacy"},
    },
    {
        "name": "sample_shareplex",
        "dialect": "shareplex",
        "topics": ["sample.shareplex"],
        "options": {"preset": "lenient"},
        "tables": [
            {
                "table": "*.ROCK_BAND",
                "key": ["BAND_NAME"],
                "columns": {
                    "BAND_NAME": "string",
                    "YEAR_START": "int32",
                    "YEAR_END": "int32",
                    "SORTED": "timestamp",
                },
            },
            {"table": "*.MIO_LOG", "key": ["MIO_LOG_ID"]},
        ],
    },
    {
        "name": "sample_qlik",
        "dialect": "qlik",
        "topics": ["sample.qlik"],
        "options": {"topics": {"sample.qlik": "support.KIT"}},
        "tables": [{"table": "support.KIT", "key": ["ID"]}],
    },
]
# All other tables are Delta tables.
ICEBERG_TABLE = "legacy_shop.order_lines"
LIMIT_SECONDS = 180.0

console = Console(width=None if sys.stdout.isatty() else 140)


@click.command()
@click.option("--changes", default=600, show_default=True, help="Number of changes per shop.")
@click.option("--seed", default=2022, show_default=True, help="Seed for the random shops.")
@click.option(
    "--directory", default="artifacts/demo", show_default=True, type=click.Path(path_type=Path), help="Deleted first."
)
@click.option("--stay", is_flag=True, help="Keep the broker, the translator and the sink running until Ctrl-C.")
@click.option("--real-canal", is_flag=True, help="Add a shop in a real MariaDB that a real Canal replicates.")
def main(changes: int, seed: int, directory: Path, stay: bool, real_canal: bool) -> None:
    """Run the whole product and show the results."""
    # SIGTERM works like Ctrl-C, because shells disable Ctrl-C for background programs.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    shutil.rmtree(directory, ignore_errors=True)
    directory = directory.resolve()
    sources = shop_sources(seed)
    real = RealCanal() if real_canal else None
    if real is not None:
        sources.append(real.source(seed + 6))
    try:
        # The broker ends last, because a client of a broker that has ended logs errors.
        with Broker(directory=directory / "broker") as broker, real or nullcontext():
            stack = Stack(broker.bootstrap, directory, [source.settings for source in sources] + SAMPLE_SOURCES)
            stack.change("sink", tables={"formats": {ICEBERG_TABLE: "iceberg"}})
            try:
                again = None if stay else broker_again(broker.settled_port(), broker.directory)
                equal = Demo(stack, sources, changes, again, real).run()
                if stay:
                    _stay(stack)
            finally:
                stack.close()
    except KeyboardInterrupt:
        console.print("stopped")
        sys.exit(130)
    except (StackError, ServerError, JarsError, WrongJarsError) as error:
        console.print(f"[red]{error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    sys.exit(0 if equal else 1)


def _stay(stack: Stack) -> None:
    """Keep everything running, with a desk that shows the demo's pipeline, dead letters and tables."""
    console.print(f"Broker at {stack.bootstrap}, metrics at port {stack.web_port}. Press Ctrl-C to stop everything.")
    files: list[str | Path] = ["-c", stack.directory / "translator.yaml", "--sink", stack.directory / "sink.yaml"]
    program = Path(sys.executable).with_name("translator")
    with subprocess.Popen([program, "desk", *files, "--port", "0"]) as desk:
        try:
            while desk.poll() is None:
                stack.check()
                time.sleep(1)
        finally:
            desk.terminate()


class Demo:
    """One run of the demo.

    Args:
        broker: the command that restarts the broker, if the broker ends together with the demo.
        real: replicates the last source.
    """

    def __init__(
        self,
        stack: Stack,
        sources: list[ShopSource],
        changes: int,
        broker: PastedCommand | None,
        real: RealCanal | None = None,
    ) -> None:
        self._stack = stack
        self._sources = sources
        self._report = DemoReport(console, stack, sources, broker)
        self._changes = changes
        self._real = real
        self._fed: dict[Coordinates, Raw] = {}
        self._ends: Counter[tuple[str, int]] = Counter()

    def run(self) -> bool:
        """Run the demo, and return whether every table matches its shop."""
        started = time.monotonic()
        stack = self._stack
        stack.create_raw_topics()
        console.rule("[bold]Four formats in")
        console.print(
            "Sending the messages of five small shops (Qlik, DTS Avro, SharePlex, Canal, and Canal as DTS wrote it "
            "before March 2022), real sample messages, and some invalid messages."
        )
        if self._real is not None:
            console.print("Starting MariaDB and Canal for a sixth shop.")
            self._real.start(stack.bootstrap)
        stack.start("translator")
        stack.start("spark-sink")
        self._wave("first half of the history", self._first_wave())
        self._wave("second half, and a new column", self._shops(grow=True))
        for source in self._sources:
            source.write_rows(stack.directory / SHOPS)
        equal = self._report.show(self._fed)
        console.print(f"\n{time.monotonic() - started:.0f} s in total, not counting the start of the broker.")
        return equal

    def _first_wave(self) -> Iterator[Raw]:
        yield from self._shops(grow=False)
        yield from (bad.message for bad in bad_input())
        for file in sorted(SAMPLES.glob("*.jsonl")):
            yield from read_record_file(file)

    def _shops(self, *, grow: bool) -> Iterator[Raw]:
        return interleaved([source.messages(self._changes // 2, grow=grow) for source in self._sources])

    def _wave(self, what: str, messages: Iterable[Raw]) -> None:
        """Feed messages and show the progress, until every table matches its shop or the time is up."""
        taken = list(messages)
        self._stack.feed(taken)
        if self._real is not None:
            taken += self._real.send()
        self._remember(taken)
        console.print(f"\n[bold]{what}[/]: {len(taken)} raw messages")
        columns = (TextColumn("  {task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        tables = [(source, name) for source in self._sources for name in source.shop.rows]
        deadline = time.monotonic() + LIMIT_SECONDS
        with Progress(*columns, console=console) as progress:
            translated = progress.add_task("translator: messages with an outcome", total=len(self._fed))
            applied = progress.add_task("sink: tables equal to the shop", total=len(tables))
            while not progress.finished and time.monotonic() < deadline:
                self._stack.check()
                progress.update(translated, completed=sum(count["in"] for count in self._stack.account().values()))
                right = sum(not self._report.differences(source, name) for source, name in tables)
                progress.update(applied, completed=right)
                time.sleep(1)

    def _remember(self, messages: Iterable[Raw]) -> None:
        """Keep the messages by the position they will have. They are shown next to their events, and written to record
        files.
        """
        for message in messages:
            place = (message.topic, message.partition)
            self._fed[Coordinates(*place, self._ends[place])] = message
            self._ends[place] += 1
        _capture(self._fed, self._stack.directory / "raw")


def _capture(messages: Mapping[Coordinates, Raw], directory: Path) -> None:
    """Write the messages as record files, one per topic (docs/translate.md)."""
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[str]] = {}
    for (topic, partition, offset), message in messages.items():
        value = None if message.value is None else base64.b64encode(message.value).decode()
        line = {"topic": topic, "partition": partition, "offset": offset, "value_base64": value}
        files.setdefault(topic, []).append(json.dumps(line))
    for topic, lines in files.items():
        (directory / f"{topic}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
