"""A reader that starts from a cut: the tables at its versions, then the topic from its offsets (docs/sink/cut.md)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

from spark_sink.commands import cli
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from tests.reading import decode
from tests.repository.pages import blocks, page, run, section
from tests.spark_sink.changes import change, record, schema_of
from tests.spark_sink.conftest import DELTA, ICEBERG
from tests.spark_sink.lake import Lake

ITEMS = "shop_sales.items"
COLUMNS = {"id": "int64", "a": "string", "b": "string"}
SCHEMAS = [
    *(schema_of({"id": "int64", "amount": "int64"}, table=table) for table in ("left", "right")),
    *(schema_of(COLUMNS, table=table) for table in ("orders", "items", "countries", "late")),
]
TOTAL = 1000


class Source:
    """Write three partitions of the canonical topic, each its own scope. The sink has read part of them."""

    def __init__(self, lake: Lake) -> None:
        self.partitions: list[list[bytes]] = [[], [], []]
        self._lake = lake
        self._read = [0, 0, 0]
        self._chance = random.Random(22)
        self._balances = {table: dict.fromkeys(range(5), 100) for table in ("left", "right")}
        for id in range(5):
            for partition, table in ((0, "orders"), (0, "countries"), (1, "items")):
                self.send(partition, "c", table, id, a="a", b="b")
            for table in self._balances:
                self._balance("c", table, id)

    def send(self, partition: int, op: str, table: str, id: int | None, old: int | None = None, **image: Any) -> None:
        event = change(
            op,
            None if op == "t" else {"id": id},
            image if op in ("c", "u") else None,
            pos=len(self.partitions[partition]),
            key_old=None if old is None else {"id": old},
            scope=f"raw:{partition}@topic-id",
            table=table,
            full=op == "c",
        )
        self.partitions[partition].append(record(event))

    def go_on(self, turn: int) -> None:
        """Transfer money from left to right, and insert, move, change and delete orders."""
        for _ in range(4):
            giver, taker, amount = self._chance.randrange(5), self._chance.randrange(5), self._chance.randint(1, 50)
            self._balances["left"][giver] -= amount
            self._balances["right"][taker] += amount
            self._balance("u", "left", giver)
            self._balance("u", "right", taker)
        new = 10 * turn
        if turn % 3 == 0:
            self.send(0, "t", "orders", None)
        self.send(0, "c", "orders", new, a="new", b="b")
        self.send(0, "c", "orders", new + 1, a="new", b=None)
        self.send(0, "u", "orders", new + 2, old=new, a="moved")
        self.send(0, "c", "orders", new, a=None, b="in its place")
        self.send(0, "d", "orders", new + 1)

    def batch(self) -> Any:
        """Return what the sink has not read yet."""
        rows = [
            (partition, offset, value)
            for partition, values in enumerate(self.partitions)
            for offset, value in enumerate(values)
            if offset >= self._read[partition]
        ]
        self._read = [len(values) for values in self.partitions]
        types = {"partition": pa.int32(), "offset": pa.int64(), "value": pa.binary()}
        columns = zip(types.items(), zip(*rows, strict=True), strict=True)
        return self._lake.frame(pa.table({name: pa.array(c, type) for (name, type), c in columns}))

    def _balance(self, op: str, table: str, id: int) -> None:
        partition = 1 if table == "left" else 2
        self.send(partition, op, table, id, amount=self._balances[table][id])


class Reader:
    """Rows in a dictionary, without comparing positions. So an event that is already in the tables, or missing between
    them and the offsets, causes an error or a different result.
    """

    def __init__(self, lake: Lake, cut: Mapping[str, Any]) -> None:
        (snippet,) = blocks(section(page("sink/cut.md"), "Start a reader from a cut"), "python")
        self.tables: dict[str, dict[int, dict[str, Any]]] = {}
        self._offsets: dict[str, dict[str, int]] = {}
        self._cut = cut["offsets"]
        others = None if lake.catalog is None else load_catalog("others", type="rest", **lake.catalog.reader)
        for name, (rows, offsets) in run(snippet)["begin"](str(lake.warehouse), cut, others).items():
            plain = [{column: row[column] for column in row if not column.startswith("_cdc_")} for row in rows]
            self.tables[name] = {row["id"]: row for row in plain}
            self._offsets[name] = offsets

    def apply(self, partition: int, offset: int, event: Mapping[str, Any]) -> None:
        name = f"{event['source']}_{event['db']}.{event['table']}"
        if offset < self._offsets.get(name, self._cut).get(str(partition), 0):
            return
        rows = self.tables.setdefault(name, {})
        if event["op"] == "t":
            rows.clear()
            return
        key = event["key"]["id"]
        if event["op"] == "c" and key is not None:
            assert key not in rows, f"{event['id']} of {name} is in the table"
            rows[key] = event["after"]
        elif event["op"] == "u":
            before = rows.pop((event["key_old"] or event["key"])["id"])
            rows[key] = before | event["after"]
        elif event["op"] == "d":
            del rows[key]


@pytest.mark.parametrize(
    "lake_of_format",
    [pytest.param(DELTA, id="Delta Lake"), pytest.param(ICEBERG, id="Iceberg", marks=pytest.mark.faults)],  # some 10 s
    indirect=True,
)
def test_from_every_cut_to_the_end(lake_of_format: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C22: at every batch's cut, the sum over two tables is constant, and a reader from there ends with the final
    tables. One batch is killed and parks a table, which is resumed slice by slice. One table is idle, one starts late,
    and the checkpoint is lost.
    """
    lake = lake_of_format
    for schema in SCHEMAS:
        lake.announce(schema)
    lake.use(TableRules(park_rejected=0))
    source, cuts = Source(lake), Cuts(lake, tmp_path)

    def apply(batch: int) -> None:
        source.go_on(len(cuts.taken))
        lake.applier(source.batch(), batch)
        cuts.take(batch)

    apply(0)
    apply(1)
    for op, id in (("c", 14), ("t", None), ("c", 15), ("c", None), ("c", 16)):
        source.send(1, op, "items", id, a=None, b="b")
    killed = source.batch()
    with monkeypatch.context() as patched:
        patched.setattr(lake.control, "end", _died)
        with pytest.raises(FatalError, match="died"):
            lake.applier(killed, 2)
    assert cuts.taken[-1] == cuts.told(), "a batch that has not ended moves no cut"
    lake.use(TableRules(park_rejected=0))
    lake.applier(killed, 2)
    cuts.take(2)
    source.send(1, "u", "items", 15, a="waits")
    source.send(1, "d", "items", 16)
    apply(3)
    assert ("REJECTED_MANY", 5) == cuts.parked()

    lake.use(TableRules())
    lake.control.requests.ask("resume", ITEMS)
    requests = lake.requests(limit=1)
    assert requests.run(), "some still wait"
    assert cuts.taken[-1] == cuts.told(), "no cut knows of it before a batch ends"
    apply(4)
    assert ("REJECTED_MANY", 2) == cuts.parked()
    while requests.run():
        pass
    source.send(1, "c", "items", 17, a=None, b=None)
    source.send(2, "c", "late", 1, a="x", b=None)
    apply(5)
    assert {} == cuts.taken[-1]["parked"]
    lake.applier = lake.new_applier("checkpoint-2")
    for batch in range(2):
        source.send(2, "u", "late", 1, b=str(batch))
        apply(batch)

    ends = {name: {row["id"]: row for row in lake.rows(name)} for name in cuts.taken[-1]["tables"]}
    assert {f"shop_sales.{schema.table}" for schema in SCHEMAS} == ends.keys()
    events = [(p, o, decode(value)) for p, values in enumerate(source.partitions) for o, value in enumerate(values)]
    for cut in cuts.taken:
        assert cut == cuts.told("--checkpoint", cut["checkpoint"], "--batch", str(cut["batch"]))
        reader = Reader(lake, cut)
        sides = (reader.tables[f"shop_sales.{side}"].values() for side in ("left", "right"))
        assert TOTAL == sum(row["amount"] for rows in sides for row in rows)
        for event in events:
            reader.apply(*event)
        assert ends == reader.tables, f"from batch {cut['batch']} of {cut['checkpoint']}"


class Cuts:
    """The output of the command after each batch."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.taken: list[dict[str, Any]] = []
        self._config = folder / "sink.yaml"
        settings = {
            "pipeline": "test",
            "kafka": {"bootstrap_servers": "nobody:1"},
            "input": {"topic": "canonical"},
            "tables": {"warehouse": str(lake.warehouse)},
            "checkpoint": "nowhere",
        }
        self._config.write_text(yaml.safe_dump(settings))

    def told(self, *asked: str) -> dict[str, Any]:
        ran = CliRunner().invoke(cli, ["cut", "-c", str(self._config), *asked])
        assert 0 == ran.exit_code, ran.output
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def take(self, batch: int) -> None:
        self.taken.append(self.told())
        assert batch == self.taken[-1]["batch"]

    def parked(self) -> tuple[str, int]:
        """Return the reason and the waiting events of the only parked table at the latest cut."""
        ((name, found),) = self.taken[-1]["parked"].items()
        assert name == ITEMS
        return found["reason"], found["waiting"]


def _died(*_: object) -> None:
    raise FatalError("died")
