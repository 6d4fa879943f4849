"""Print the demo's report: messages next to events, counts, tables, dead letters and next steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid

from cdc_core.envelope import ChangeEvent
from dev.demo.compare import differences
from dev.demo.next_steps import PastedCommand, asking_the_broker, asking_the_lakehouse
from dev.demo.readers import own_columns_in_between, selected_by_readers
from dev.demo.sources import ShopSource
from dev.demo.writers import Raw
from dev.servers.stack import CANONICAL, DEAD_LETTERS, Stack, source_rows
from translator.codecs.avro import AvroCodec

# The table in the suggested commands.
_TABLE = "canal_shop.orders"


class Coordinates(NamedTuple):
    """A raw message's position."""

    topic: str
    partition: int
    offset: int


class DemoReport:
    """The report for one run.

    Args:
        broker: the command that restarts the broker, if the broker ends with the demo.
    """

    def __init__(self, console: Console, stack: Stack, sources: list[ShopSource], broker: PastedCommand | None) -> None:
        self._console = console
        self._stack = stack
        self._sources = sources
        self._broker = broker
        self._shown: Coordinates | None = None

    def differences(self, source: ShopSource, name: str) -> list[str]:
        """Return the differences between a shop's table and its lakehouse table."""
        shape = source.shop.shape(name)
        return differences(shape, source.shop.rows[name].values(), self._stack.rows(f"{source.prefix}.{name}"))

    def show(self, fed: Mapping[Coordinates, Raw]) -> bool:
        """Print the report. Return whether every table equals its shop."""
        self._console.rule("[bold]One canonical envelope out")
        self._show_pairs(fed)
        self._console.rule("[bold]Every message accounted for")
        self._show_account()
        self._console.rule("[bold]Lakehouse tables, read with SELECT * and no filter")
        equal = self._show_tables()
        self._console.print(told_of_sink(self._stack.log("spark-sink").read_text().splitlines()), highlight=False)
        self._console.rule("[bold]Dead letters, with their reasons")
        self._show_dead_letters()
        self._console.rule("[bold]Next")
        self._show_next()
        return equal

    def _show_pairs(self, fed: Mapping[Coordinates, Raw]) -> None:
        codec = AvroCodec()
        events = [codec.decode(record.value()) for record in self._stack.records(CANONICAL)]
        for dialect, wanted in _PAIRS.items():
            event = next((event for event in events if wanted(event)), None)
            if event is None:
                continue
            origin = event.origin
            self._shown = Coordinates(origin.topic, origin.partition, origin.offset)
            raw = fed[self._shown].value or b""
            self._console.print(
                Panel(_printable(raw), title=f"{dialect}: {origin.topic} {origin.partition}/{origin.offset}")
            )
            self._console.print(_summary(event))

    def _show_account(self) -> None:
        grid = Grid("raw topic", "partition", "in", "translated", "dead", "skipped", "learned")
        for (topic, partition), counts in sorted(self._stack.account().items()):
            words = ("in", "translated", "dead", "skipped", "learned")
            grid.add_row(topic, str(partition), *(str(counts[word]) for word in words))
        self._console.print(grid)

    def _show_tables(self) -> bool:
        equal = True
        for source in self._sources:
            for name, rows in source.shop.rows.items():
                for reader, selected in selected_by_readers(self._stack.folder(source.table(name))):
                    wrong = differences(source.shop.shape(name), rows.values(), source_rows(selected))
                    wrong += own_columns_in_between(selected.column_names)
                    equal = equal and not wrong
                    verdict = "[green]equal to the shop, every cell" if not wrong else f"[red]{len(wrong)} differences"
                    self._console.print(f"{source.table(name)} in {reader}: {len(rows)} rows, {verdict}")
        for table in ("canal_shop.customers", "legacy_shop.orders", "sample_canal_inventory.products2"):
            self._show_table(table)
        return equal

    def _show_table(self, table: str) -> None:
        rows = self._stack.rows(table)
        grid = Grid(title=f"{table} ({len(rows)} rows, the first 8)", title_justify="left")
        for name in rows[0] if rows else ():
            grid.add_column(name, overflow="ellipsis", no_wrap=True)
        for row in sorted(rows, key=lambda row: str(next(iter(row.values()))))[:8]:
            grid.add_row(*(str(cell) for cell in row.values()))
        self._console.print(grid)

    def _show_dead_letters(self) -> None:
        for record in self._stack.records(DEAD_LETTERS):
            headers = {name: (value or b"").decode() for name, value in record.headers() or ()}
            self._console.print(
                f"[yellow]{headers['cdc-error-code']}[/] {headers['cdc-error-message']}", highlight=False
            )

    def _show_next(self) -> None:
        directory, raw = self._stack.directory, self._stack.directory / "raw"
        steps = asking_the_lakehouse(directory, _TABLE)
        if self._broker is not None:
            steps.append(self._broker)
        if self._shown is not None:
            steps += asking_the_broker(directory, *self._shown, _TABLE)
        self._say("Ready to paste, in this folder:")
        for step in steps:
            self._say(f"\n  # {step.shows}\n  {step.command}")
        for line in (
            "\nThe raw messages are also in record files. The same code reads them without Kafka:",
            f"  .venv/bin/translator translate -d canal -o profile=oss {_relative(raw / 'raw.canal.jsonl')}",
            f"  .venv/bin/translator translate -d qlik -o topics=support.KIT {_relative(raw / 'sample.qlik.jsonl')}",
            "  make demo DEMO_ARGS=--stay keeps everything running, so that you can look around",
            "  make test                           lint, types, unit, integration",
            "  docs/envelope.md                    the contract for consumers",
        ):
            self._say(line)

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)


def told_of_sink(log: Iterable[str]) -> str:
    """Return two lines about the sink's work, taken from its log."""
    entries = [json.loads(line) for line in log if line.startswith("{")]
    told = Counter[str]()
    for entry in entries:
        told[entry["event"]] += 1
        if entry["event"] == "columns added":
            told["columns"] += len(entry["columns"])
        if entry["event"] == "batch applied":
            told.update({name: entry[name] for name in ("events", "commits", "rows", "deleted")})
            told["quarantined"] += sum(entry["quarantined"].values())
    parked = ", ".join(sorted({entry["table"] for entry in entries if entry["event"] == "table parked"}))
    return (
        f"The sink applied {told['events']} events in {told['batch applied']} batches: {told['rows']} rows written, "
        f"{told['deleted']} of them as deleted, in {told['commits']} commits.\n"
        f"It created {told['table created']} tables and added {told['columns']} columns. {told['quarantined']} events "
        f"are in quarantine; {f'parked until an operator decides: {parked}' if parked else 'no table is parked'}."
    )


_PAIRS: dict[str, Callable[[ChangeEvent], bool]] = {
    "qlik": lambda event: event.source == "qlik" and event.op == "u",
    "dts_avro": lambda event: event.source == "dts" and event.op == "c",
    "shareplex": lambda event: event.source == "shareplex" and event.op == "u" and event.key_old is not None,
    "canal": lambda event: event.source == "canal" and event.op == "u",
    "canal, from a real database": lambda event: event.source == "mariadb" and event.op == "u",
    "canal, DTS before March 2022": lambda event: event.source == "legacy" and event.op == "u",
}


def _summary(event: ChangeEvent) -> str:
    shown = (
        "id",
        "op",
        "variant",
        "db",
        "schema",
        "table",
        "key",
        "key_old",
        "before",
        "after",
        "after_state",
        "changed",
        "notes",
    )
    lines = [f"  {name}: {value}" for name in shown if (value := getattr(event, name)) is not None]
    return "\n".join(line[:400] for line in lines)


def _printable(raw: bytes, limit: int = 700) -> str:
    """Return a raw message as printable text. Avro looks like the right-hand column of a hex dump."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)
    return text if len(text) <= limit else text[:limit] + " …"


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
