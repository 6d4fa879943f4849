"""A real Debezium connector follows the same workload, and the example plug-in reads its records. This is a second
opinion on the binary log, and tests the plug-in with records that we did not write.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from dev.servers.broker import Broker
from dev.servers.debezium import DATABASE_VERSION, JARS, Debezium
from dev.servers.mariadb import MariaDb
from dev.servers.stack import CANONICAL, Stack
from spark_sink.errors import Reason
from spark_sink.tables.delta.control_tables import ParkedTables
from tests.real_canal.comparison import Difference, Rows, Table, compare, source_rows, tables_of
from tests.real_canal.conftest import need
from tests.real_canal.pipeline import PATIENCE, STEADY, WORKLOAD, Tier
from tests.translator.plugins.test_examples import EXAMPLES, install

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NAME = PREFIX = "dbz"
SOURCE = {
    "name": "shop",
    "dialect": "debezium_json",
    "topics": [f"{PREFIX}.*"],
    "tables": [{"table": "keyed.uniques", "key": ["n"]}],
}

PARKED: Mapping[str, Reason] = {"keyed.nothing": Reason.TABLE_REFUSED}

OF_DEBEZIUM: Mapping[str, Difference] = {
    # InnoDB does not log cascades.
    "family.children": Difference(extra={(10,)}, cells={(20,): {"parent"}}),
    # Debezium sends the rows of an XA transaction when it is prepared.
    "flow.prepared": Difference(extra={(2,)}),
    # A zero date becomes NULL. A number of microseconds does not tell how many fraction digits the column has.
    "loaded.moments": Difference(cells={(5,): {"d", "dt"}, (4,): {"t6"}}),
    "types.moments": Difference(cells={(5,): {"d", "dt"}, (4,): {"t6"}}),
    # The year 0 is 1900 in the binary log, and 2000 in the first load, which also selects a FLOAT as text with six
    # digits. In the binary log, a BOOLEAN is read as true or false.
    "loaded.numbers": Difference(cells={(1,): {"f"}, (4,): {"y"}}),
    "types.numbers": Difference(cells={(4,): {"o", "y"}}),
    # The statements are in another topic, which the plug-in does not read.
    "statements.archive": Difference(missing={(1, 5)}, extra={(9, 9)}),
    "statements.by_day": Difference(extra={(1, 5)}),
    "statements.by_month": Difference(missing={(9, 9)}, extra={(1, 5)}),
    "statements.by_week": Difference(extra={(2, 15)}),
    "statements.dropped": Difference(extra={(1,)}),
    "statements.logged": Difference(cells={(1,): {"v"}, (2,): {"v"}}),
    "statements.newly_named": Difference(missing={(1,)}),
    "structure.grows": Difference(cells={(3,): {"extra"}, (4,): {"extra"}}),
    "structure.narrows": Difference(cells={(1,): {"v"}}),
    "structure.renames": Difference(cells={(1,): {"new_name"}, (3,): {"new_name"}}),
}
"""Differences that are wrong before Debezium or in Debezium, or that only a statement explains."""


@dataclass(frozen=True, repr=False)  # pytest shows the arguments of a failed test, and these have 200 MB
class Followed:
    """What is left of a run: the tables and their rows at the source, the counts of raw records, and the warehouse."""

    tables: Mapping[str, Table]
    rows: Mapping[str, Rows]
    counts: Counter[str]
    warehouse: Path


@pytest.fixture(scope="module")
def followed(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """The result of the workload. The rows of one database exist before Debezium starts."""
    need("a real Debezium", JARS)
    folder = tmp_path_factory.mktemp("debezium")
    (example,) = [path for path in EXAMPLES if path.name == "debezium_json"]
    with pytest.MonkeyPatch.context() as patch, MariaDb(version=DATABASE_VERSION) as database:
        patch.setenv("PYTHONPATH", os.pathsep.join([*install(example, folder), os.environ.get("PYTHONPATH", "")]))
        stack = Stack(broker.bootstrap, folder / "stack", [SOURCE])
        try:
            yield _result(database, broker, Tier(NAME, stack, f"{CANONICAL}.{NAME}"))
        finally:
            stack.close()


def _result(database: MariaDb, broker: Broker, tier: Tier) -> Followed:
    types = (WORKLOAD / "1_types.sql").read_text(encoding="utf-8")
    database.run(types.replace("DATABASE types", "DATABASE loaded").replace("types.", "loaded."))
    database.run("CREATE DATABASE marks; CREATE TABLE marks.ends (id INT PRIMARY KEY)")
    with Debezium(database, broker.bootstrap, PREFIX) as debezium:
        for file in sorted(WORKLOAD.glob("1_*.sql")):
            database.run(file.read_text(encoding="utf-8"))
        database.run("INSERT INTO marks.ends VALUES (1)")
        _wait_for_mark(broker, debezium)
        debezium.stop()  # sends what it has read
        total = sum(_ends(broker).values())
    stack = tier.stack
    stack.change("translator", group=NAME, output={"topic": tier.topic}, timing=STEADY)
    stack.change("sink", pipeline=NAME, input={"topic": tier.topic})
    stack.start("translator")
    counts = tier.wait_for_outcomes(total)
    assert 0 == stack.stop("translator")
    stack.start("spark-sink", "--available-now")
    assert 0 == stack.wait("spark-sink", PATIENCE), stack.log("spark-sink")
    tables = {table.name: table for table in tables_of(database, {"keyed.uniques": ("n",)})}
    rows = {name: source_rows(database, table) for name, table in tables.items()}
    return Followed(tables, rows, counts, stack.warehouse)


def _wait_for_mark(broker: Broker, debezium: Debezium) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _ends(broker).get(f"{PREFIX}.marks.ends"):
        debezium.check()
        assert time.monotonic() < deadline, "the mark did not arrive"
        time.sleep(0.2)


def _ends(broker: Broker) -> dict[str, int]:
    """Return the number of records in each topic of the connector."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    places = [TopicPartition(topic, 0) for topic in admin.list_topics().topics if topic.startswith(f"{PREFIX}.")]
    found = admin.list_offsets({place: OffsetSpec.latest() for place in places})
    return {place.topic: found[place].result().offset for place in places}


def test_tables_equal_their_source(followed: Followed) -> None:
    """Every cell of every table equals the database, except for the listed ones, also in the rows of the first load."""
    found = {
        name: compare(followed.rows[name], followed.warehouse, table)
        for name, table in followed.tables.items()
        if name not in PARKED
    }
    assert OF_DEBEZIUM == {name: difference for name, difference in found.items() if difference != Difference()}
    assert sum(map(len, followed.rows.values())) > 2500


def test_parked_tables(followed: Followed) -> None:
    held = ParkedTables(str(followed.warehouse), NAME).held()
    assert {f"shop_{name}": reason for name, reason in PARKED.items()} == {
        name: parked.reason for name, parked in held.items()
    }


def test_every_message_has_an_outcome(followed: Followed) -> None:
    """No message is a dead letter, and only tombstones are skipped."""
    assert followed.counts["in"] == followed.counts["translated"] + followed.counts["skipped"]
    assert 6000 < followed.counts["translated"]
    assert 500 < followed.counts["skipped"] < 600
