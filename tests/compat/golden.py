"""The states that a release leaves behind: `python -m tests.compat.golden` writes those of this release.

A golden file is a broker's data, a warehouse and a checkpoint in the middle of a run, with the raw messages that come
next and the rows that the tables must have after them. The half before is a shop for each format, so the states
contain learned metadata, schemas, committed offsets, dead letters, a held table, and mirrors in both table formats with
deleted rows, histories and a parked table.
"""

from __future__ import annotations

import base64
import fcntl
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dev.demo.compare import shop_row
from dev.demo.shop import Row, ShopColumn, ShopTable
from dev.demo.sources import ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw
from dev.servers.broker import Broker
from dev.servers.stack import DEAD_LETTERS, Stack, wait_until

HERE = Path(__file__).parent
PLACE = Path("/tmp/cdc-translator-golden")
"""Iceberg's metadata contain absolute paths, so the states always have the same place."""

SEED = 20260320
CHANGES = 40
SECONDS = 900.0
"""A timeout for hangs, for each step."""

BROKER = {"offsets.retention.minutes": str(2**31 - 1)}
"""Otherwise, the group's offsets would expire a week after the states were made."""

STATES = ("broker/data", "warehouse", "checkpoint")
HISTORIES = "canal_shop.*"
PARKED = "shareplex_SHOP.customers"
HELD = Raw("raw.canal", 0, None, b'{"database":"shop","table":"orders","type":"INSERT","isDdl":false,"data":null}')
HELD_CODE = "MISSING_FIELD"


class Golden:
    """The next messages, and the tables after them."""

    def __init__(self, messages: Sequence[Raw], tables: Mapping[str, tuple[ShopTable, list[Row]]]) -> None:
        self.messages = messages
        self.tables = tables


@contextmanager
def alone() -> Iterator[Path]:
    """Return the place of the states, for one process at a time. It is empty."""
    with PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir()
        try:
            yield PLACE
        finally:
            shutil.rmtree(PLACE)


def stack(broker: Broker, sources: Sequence[ShopSource]) -> Stack:
    """Return the programs, with the configuration under which the states are made and used."""
    made = Stack(broker.bootstrap, PLACE, [source.settings for source in sources])
    made.change("translator", on_error={HELD_CODE: "hold_table"})
    made.change("sink", tables={"formats": {"dts_shop.*": "iceberg"}, "modes": {HISTORIES: "history"}})
    return made


def make(release: str) -> Path:
    """Write the golden file for a release, and return its path."""
    sources = shop_sources(SEED)
    with alone(), Broker(directory=PLACE / "broker", settings=BROKER) as broker:
        running = stack(broker, sources)
        running.create_raw_topics()
        try:
            running.start("translator")
            running.start("spark-sink")
            for _ in range(2):  # the second half deletes rows that the first half has written
                running.feed(interleaved([source.messages(CHANGES, grow=False) for source in sources]))
                _until_equal(running, sources)
            command(running, "spark-sink", "park", PARKED, "--wait", "300")
            running.feed([HELD])
            wait_until("the dead letter", SECONDS, lambda: running.records(DEAD_LETTERS), running)
            running.stop("translator")
            running.stop("spark-sink")
        finally:
            running.close()
        following = list(interleaved([source.messages(CHANGES, grow=True) for source in sources]))
        expected = {
            source.table(name): [source.shop.shape(name), [*rows.values()]]
            for source in sources
            for name, rows in source.shop.rows.items()
        }
        broker.stop()
        return _pack(release, following, expected)


def is_history(table: str) -> bool:
    return table.startswith(HISTORIES.removesuffix("*"))


def command(running: Stack, program: str, *arguments: str) -> str:
    """Run a command of one of the programs, and return its output."""
    config = {"translator": "translator.yaml", "spark-sink": "sink.yaml"}[program]
    called = [Path(sys.executable).with_name(program), *arguments, "-c", running.directory / config]
    done = subprocess.run(called, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def _until_equal(running: Stack, sources: Sequence[ShopSource]) -> None:
    compared = [source for source in sources if not is_history(source.table(""))]
    wait_until("tables", SECONDS, lambda: not any([*source.wrong(running.rows)] for source in compared), running)


def _pack(release: str, messages: Sequence[Raw], tables: Mapping[str, Any]) -> Path:
    path = HERE / f"{release}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for state in STATES:
            for file in sorted(PLACE.joinpath(state).rglob("*")):
                if file.is_file():
                    packed.write(file, file.relative_to(PLACE))
        lines = [[one.topic, one.partition, _text(one.key), _text(one.value)] for one in messages]
        packed.writestr("messages.json", json.dumps(lines))
        packed.writestr("tables.json", json.dumps(tables, default=_plain))
    return path


def unpack(path: Path) -> Golden:
    """Unpack a golden file into the place of the states."""
    with zipfile.ZipFile(path) as packed:
        packed.extractall(PLACE)
    lines = json.loads(PLACE.joinpath("messages.json").read_text())
    messages = [Raw(topic, partition, _bytes(key), _bytes(value)) for topic, partition, key, value in lines]
    tables = {}
    for name, (shape, rows) in json.loads(PLACE.joinpath("tables.json").read_text()).items():
        columns = tuple(ShopColumn(**column) for column in shape["columns"])
        table = ShopTable(shape["name"], columns, tuple(shape["key"]))
        tables[name] = table, [shop_row(table, row) for row in rows]
    return Golden(messages, tables)


def _plain(value: object) -> object:
    match value:
        case ShopTable() | ShopColumn():
            return vars(value)
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return _text(value)
    return str(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


if __name__ == "__main__":
    from cdc_core.state_format import release

    print(make(release()))
