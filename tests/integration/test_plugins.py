"""Both example plug-ins in the demo's pipeline: broker, translator, sink, and tables equal to the shops.

One translator writes a shop from Canal as a Debezium projection. Another one reads this projection with the plug-in
`debezium_json`, and a second shop with `maxwell`. Its events reach the tables through the sink.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dev.demo.shop import Row, Shop, ShopChange
from dev.demo.sources import ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw, iso, millis, partition_of, to_json
from dev.servers.broker import Broker
from dev.servers.stack import Stack, wait_until
from tests.translator.plugins.test_examples import EXAMPLES, install

CHANGES = 400
SEED = 44
PROJECTION = "cdc.debezium"
SECONDS = 900  # a timeout for hanging tests, not a measurement

TYPES = {"load": "bootstrap-insert", "insert": "insert", "update": "update", "delete": "delete"}


class MaxwellWriter:
    """Writes changes as Maxwell does, with `output_primary_key_columns` and without types."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._number = 0

    def write(self, change: ShopChange) -> Iterator[Raw]:
        self._number += 1
        message: dict[str, Any] = {"database": "shop", "table": change.table.name}
        if change.op == "add_column":
            sql = "ALTER TABLE `customers` ADD COLUMN `phone` varchar(100)"
            message |= {"type": "table-alter", "ts": millis(change.at), "sql": sql}
        else:
            message |= {
                "type": TYPES[change.op],
                "ts": millis(change.at) // 1000,
                "xid": self._number,
                "commit": True,
                "primary_key_columns": list(change.table.key),
                "data": cells(change.after or change.before or {}),
            }
        if change.op == "update" and change.before is not None:
            old = {name: value for name, value in change.before.items() if value != (change.after or {})[name]}
            message["old"] = cells(old)
        yield Raw(self._topic, partition_of(change.table), None, to_json(message))


def cells(row: Row) -> dict[str, Any]:
    """Return a row as Maxwell writes it. Bytes become base64, and numbers stay numbers."""
    return {name: iso(value, " ") if isinstance(value, date) else value for name, value in row.items()}


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install both plug-ins for the processes that the test starts."""
    paths = [path for example in EXAMPLES for path in install(example, tmp_path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*dict.fromkeys(paths), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.integration
@pytest.mark.usefixtures("_installed")
def test_the_tables_equal_the_shops(empty_broker: Broker, tmp_path: Path) -> None:
    """Every cell is equal, and no message is rejected."""
    (canal,) = [source for source in shop_sources(SEED) if source.name == "canal"]
    read_back = {"name": "again", "dialect": "debezium_json", "topics": [PROJECTION]}
    maxwell = ShopSource(
        "maxwell",
        {"name": "maxwell", "dialect": "maxwell", "topics": ["raw.maxwell"]},
        MaxwellWriter("raw.maxwell"),
        Shop(SEED),
        "maxwell_shop",
    )
    projections = [{"topic": PROJECTION, "codec": "debezium"}]
    first = Stack(empty_broker.bootstrap, tmp_path / "first", [canal.settings], projections=projections)
    second = Stack(empty_broker.bootstrap, tmp_path / "second", [read_back, maxwell.settings])
    second.change("translator", group="second", output={"topic": "cdc.second"})
    second.change("sink", input={"topic": "cdc.second"})
    try:
        for stack in (first, second):
            stack.create_raw_topics()
            stack.start("translator")
        second.start("spark-sink")
        first.feed(interleaved([source.messages(CHANGES, grow=True) for source in (canal, maxwell)]))

        def wrong() -> list[str]:
            first.check()
            again = canal.wrong(lambda table: second.rows(table.replace("canal_", "again_")))
            return [*again, *maxwell.wrong(second.rows)]

        wait_until("the tables equal the shops", SECONDS, lambda: not wrong(), second)
        assert [] == [record.value() for record in second.records("cdc.second.dlq")]
        tables = [*second.warehouse.glob("*_shop/*")]
        assert {"again_shop", "maxwell_shop"} == {table.parent.name for table in tables}
    finally:
        for stack in (first, second):
            stack.close()
