"""With a nullable unique key, from raw messages to a real table, the table has the rows that have a key."""

from __future__ import annotations

import random

from cdc_core.envelope import ChangeEvent
from dev.demo.shop import START, Row, ShopChange, ShopColumn, ShopTable
from dev.demo.writers.dts_avro import DtsAvroWriter
from spark_sink.errors import Reason
from tests.spark_sink.lake import Lake
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.translate import Events, Translator

TABLE = ShopTable("orders", (ShopColumn("u", "bigint"), ShopColumn("v", "varchar")), ("u",))


def _history(changes: int) -> tuple[list[ShopChange], list[Row]]:
    """Return changes of rows that gain, lose and change a key, and the final rows."""
    rng = random.Random(20)
    rows: list[Row] = []
    made = []
    for n in range(changes):
        free: list[int | None] = [None, *({1, 2, 3, 4} - {row["u"] for row in rows})]
        before = rng.choice(rows) if rows and rng.random() < 0.7 else None
        after = None if before and rng.random() < 0.2 else {"u": rng.choice(free), "v": f"v{n}"}
        op = "insert" if before is None else "delete" if after is None else "update"
        made.append(ShopChange(op, TABLE, START, before, after))
        rows = [row for row in rows if row is not before] + ([after] if after is not None else [])
    return made, rows


def _events(changes: list[ShopChange], lake: Lake) -> list[ChangeEvent]:
    """Translate the changes and announce their schemas."""
    dialect = build("dts_avro", Setup("shop"), {"unique_key_as_key": True})
    write, translator = DtsAvroWriter("raw", "sales", "u_key").write, Translator("shop", dialect, Limits())
    events = []
    for offset, change in enumerate(changes):
        (raw,) = write(change)
        result = translator.translate(Message("raw", 0, offset, 0, None, raw.value))
        assert isinstance(result, Events)
        events += result.events
        for schema in filter(None, result.schemas):
            lake.announce(schema)
    return events


def test_the_table_has_the_rows_that_have_a_key(lake: Lake) -> None:
    """A row is removed when its key becomes NULL and added when it gets one. Rows without a key are quarantined."""
    changes, rows = _history(60)
    events = _events(changes, lake)
    for batch in range(3):
        lake.apply(batch, events[batch * 20 : batch * 20 + 20])
    keyed = sorted((str(row["u"]), row["v"]) for row in rows if row["u"] is not None)
    assert keyed == [(str(row["u"]), row["v"]) for row in lake.rows()]
    without = [event.id for event in events if event.key is None]
    assert sorted(without) == sorted(str(id) for reason, _, id in lake.quarantine() if reason == Reason.KEY_UNKNOWN)
    assert {None} != {event.key_old for event in events if event.key is None}
