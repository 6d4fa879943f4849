"""A real Canal on a real database: both paths and both table formats end with the rows that `SELECT` finds, and every
row that cannot be right is flagged.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from cdc_core.reader import decode
from spark_sink.errors import Reason
from spark_sink.tables.delta.control_tables import ParkedTables
from tests.real_canal.comparison import Difference, compare
from tests.real_canal.conftest import Run
from tests.real_canal.pipeline import DEFAULT, HASHED, PARTITIONS, TIERS
from translator._native import absence

pytestmark = [pytest.mark.integration, pytest.mark.faults]

PARKED: Mapping[str, Reason] = {
    "keyed.nothing": Reason.TABLE_REFUSED,
    "statements.archive": Reason.ROWS_UNACCOUNTED,
    "statements.by_day": Reason.ROWS_UNACCOUNTED,
    "statements.by_month": Reason.ROWS_UNACCOUNTED,
    "statements.by_week": Reason.ROWS_UNACCOUNTED,
    "statements.dropped": Reason.TABLE_DROPPED,
    "statements.logged": Reason.ROWS_UNACCOUNTED,
    "statements.newly_named": Reason.ROWS_UNACCOUNTED,
    "statements.renamed": Reason.ROWS_UNACCOUNTED,
}

INCOMPLETE: Mapping[str, Difference] = {
    # A zero date is an issue.
    "types.moments": Difference(cells={(5,): {"d", "dt"}}, incomplete={(5,)}),
    # The values of a renamed column, and values that became shorter, were never sent.
    "structure.renames": Difference(cells={(1,): {"new_name"}, (3,): {"new_name"}}, incomplete={(1,), (3,)}),
    "structure.narrows": Difference(cells={(1,): {"v"}}, incomplete={(1,)}),
}
"""Differences in rows that the sink marked as incomplete."""

OF_CANAL: Mapping[str, Difference] = {
    # InnoDB does not log cascades.
    "family.children": Difference(extra={(10,)}, cells={(20,): {"parent"}}),
    # The row of an XA transaction that was rolled back. The rollback is a dead letter.
    "flow.prepared": Difference(extra={(2,)}),
    # Canal decodes text of every character set as UTF-8.
    "charsets.words": Difference(
        cells={(2,): {"latin1", "cp1251", "gbk", "sjis"}, (3,): {"ucs2", "utf16"}},
    ),
    # Canal decodes MariaDB's JSON, which is text, byte by byte.
    "types.texts": Difference(cells={(1,): {"j"}}),
}
"""Differences that are wrong before Canal or in Canal (docs/dialects/canal.md)."""

TIER = pytest.mark.parametrize("tier", TIERS)


@TIER
def test_tables_equal_their_source(run: Run, tier: str) -> None:
    """Every cell of every table equals the database, except for the listed ones."""
    found = {
        name: compare(run.rows[name], run.warehouses[tier], table)
        for name, table in run.tables.items()
        if name not in PARKED
    }
    assert INCOMPLETE | OF_CANAL == {
        name: difference for name, difference in found.items() if difference != Difference()
    }
    assert sum(map(len, run.rows.values())) > 2500


@TIER
def test_parked_tables(run: Run, tier: str) -> None:
    """A table is parked if rows changed without events, or if nothing identifies its rows. All others continue."""
    held = ParkedTables(str(run.warehouses[tier]), tier).held()
    assert {f"shop_{name}": reason for name, reason in PARKED.items()} == {
        name: parked.reason for name, parked in held.items()
    }


def test_both_paths_write_the_same(run: Run) -> None:
    """The canonical topics contain the same records, and the native path wrote most of them."""
    native, plain = (Counter(run.canonical[tier]) for tier in TIERS)
    assert native == plain
    assert run.taken["plain"] == 0
    assert (absence() is None) == (run.taken["native"] > 300)


@TIER
def test_every_message_has_an_outcome(run: Run, tier: str) -> None:
    """Only the end of an XA transaction that was rolled back is a dead letter. Only the texts of statements whose rows
    arrive too are skipped.

    The text of CREATE TABLE … SELECT is not skipped. It becomes an event without a note.
    """
    messages = [message for topic in run.raw.values() for _, message in topic]
    texts = [message["sql"] for message in messages if message["type"] == "QUERY" and not message["isDdl"]]
    skipped = sum(not text.startswith("CREATE TABLE") for text in texts)
    assert skipped > 100
    assert 1 == sum(message["type"] == "XAROLLBACK" for message in messages)
    translated = len(messages) - skipped - 1
    assert run.counts[tier] == {"in": len(messages), "translated": translated, "skipped": skipped, "dead": 1}


def test_cascades_are_announced(run: Run) -> None:
    """The only table with a foreign key that changes its rows has a note, and the sink logs a warning for it."""
    events = [decode(value) for _, value, _ in run.canonical["plain"]]
    noted = {(event.db, event.table) for event in events if "CASCADE_NOT_LOGGED" in (event.notes or ())}
    assert noted == {("family", "children")}
    for log in run.logs.values():
        lines = [json.loads(line) for line in log.splitlines() if '"statement changed rows without events"' in line]
        assert "shop_family.children" in {line["table"] for line in lines}


def test_canal_partitions_by_key(run: Run) -> None:
    """Canal spread the rows of the hashed tables over all partitions, and kept each key in one."""
    places: dict[tuple[object, ...], set[int]] = defaultdict(set)
    for partition, message in run.raw[HASHED]:
        for row in message["data"] or ():
            places[message["table"], *(row[name] for name in message["pkNames"])].add(partition)
    assert {1} == {len(partitions) for partitions in places.values()}
    assert set(range(PARTITIONS)) == set().union(*places.values())


def test_canal_repeated_a_range(run: Run) -> None:
    """Canal continued after the first restart, repeated the second group after it was killed, and followed the database
    into another file of the binary log.
    """
    marks = [
        row["id"] for _, message in run.raw[DEFAULT] if message["table"] == "ends" for row in message["data"] or ()
    ]
    assert marks == ["1", "2", "2", "3"]
