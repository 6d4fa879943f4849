"""The demo's report: messages beside events, the account, tables, dead letters, next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid

from cdc_core.envelope import ChangeEvent
from dev.compare import differences
from dev.sources import ShopSource
from dev.stack import CANONICAL, DEAD_LETTERS, Stack
from dev.writers import Raw
from translator.codecs.avro import AvroCodec

Coordinates = tuple[str, int, int]
"""Topic, partition and offset of a raw message."""


class DemoReport:
    """The showing of one run."""

    def __init__(self, console: Console, stack: Stack, sources: list[ShopSource]) -> None:
        self._console = console
        self._stack = stack
        self._sources = sources

    def differences(self, source: ShopSource, name: str) -> list[str]:
        """Return the differences between a table of a shop and its table in the lakehouse."""
        shape = source.shop.shape(name)
        return differences(shape, source.shop.rows[name].values(), self._stack.rows(f"{source.prefix}.{name}"))

    def show(self, fed: Mapping[Coordinates, Raw]) -> bool:
        """Prints everything; true when every table equals its shop."""
        self._console.rule("[bold]One canonical envelope out")
        self._show_pairs(fed)
        self._console.rule("[bold]Every message accounted for")
        self._show_account()
        self._console.rule("[bold]Lakehouse tables")
        equal = self._show_tables()
        self._console.rule("[bold]Dead letters: kept, with the reason")
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
            raw = fed[origin.topic, origin.partition, origin.offset].value or b""
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
                wrong = self.differences(source, name)
                equal = equal and not wrong
                verdict = "[green]equal to the shop, every cell" if not wrong else f"[red]{len(wrong)} differences"
                self._console.print(f"{source.prefix}.{name}: {len(rows)} rows, {verdict}")
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
        raw = self._stack.directory / "raw"
        for line in (
            "The raw messages of this showing are in record files; the same core reads them without Kafka:",
            f"  .venv/bin/translator translate -d canal -o profile=oss {_relative(raw / 'raw.canal.jsonl')}",
            f"  .venv/bin/translator translate -d qlik -o topics=support.KIT {_relative(raw / 'sample.qlik.jsonl')}",
            f"The tables are in {_relative(self._stack.warehouse)}, the configurations beside them.",
            "  make demo DEMO_ARGS=--stay          keeps all of it running, to look around",
            "  make test                           lint, types, unit, integration",
            "  docs/envelope.md                    what consumers build on",
        ):
            self._console.print(line, highlight=False, soft_wrap=True)


_PAIRS: dict[str, Callable[[ChangeEvent], bool]] = {
    "qlik": lambda event: event.source == "qlik" and event.op == "u",
    "dts_avro": lambda event: event.source == "dts" and event.op == "c",
    "shareplex": lambda event: event.source == "shareplex" and event.op == "u" and event.key_old is not None,
    "canal": lambda event: event.source == "canal" and event.op == "u",
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
    """A raw message as text; Avro as it looks in a hex dump's right column."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)
    return text if len(text) <= limit else text[:limit] + " …"


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
