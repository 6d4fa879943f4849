"""The drills: how to trigger each alert, and the steps of its page that resolve it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from dev.servers.stack import CANONICAL, wait_until
from tests.chaos.alerts.bench import ERP, ERP_METADATA, PATIENCE, SHOP, Bench, unknown_row
from tests.translator.commands.test_learn import metadata
from tests.translator.operations._replay import CLEAR, update

KEYLESS, CHANGELOG, COMPARED = "shop_shop.keyless", "shop_shop.log", "shop_shop.compared"
# The table whose statement was not applied.
GONE = "shop_shop.gone"

NOT_REGISTERED = '"event": "table registration failed, will retry"'


class Drill(Struct, frozen=True):
    """A drill for one alert.

    Args:
        cause: what triggers it, in words. `ended`: what resolves it.
        begin: triggers it. `end` follows its page. An alert about something new ends on its own after ten minutes.
    """

    alert: str
    cause: str
    begin: Callable[[Bench], None]
    ended: str
    end: Callable[[Bench], None]

    @property
    def is_at_rest_before(self) -> bool:
        """Whether the alert is inactive before the drill. It already fires for a program that was never started."""
        return self.begin is not _nothing


def _nothing(bench: Bench) -> None:
    """Do nothing: the cause already exists, or the rule's window ends the alert."""


def _start_translator(bench: Bench) -> None:
    bench.stack.start("translator")


def _start_sink(bench: Bench) -> None:
    bench.stack.start("spark-sink")


def _hang(bench: Bench) -> None:
    bench.signal("translator", signal.SIGSTOP)


def _kill_and_start(bench: Bench) -> None:
    bench.stack.kill("translator")
    bench.stack.start("translator")


def _broken(bench: Bench) -> None:
    bench.send(SHOP, b"{]", b"{]")


def _look_and_discard(bench: Bench) -> None:
    assert "MALFORMED_JSON" in bench.command("translator", "dlq", "ls")
    bench.command("translator", "dlq", "discard", "--reason", "a drill", "--code", "MALFORMED_JSON", "--execute")


def _ambiguous(bench: Bench) -> None:
    bench.send(SHOP, update(1, table="held"), update(2, table="held", both=False))


def _correct_and_replay(bench: Bench) -> None:
    bench.stack.stop("translator")
    shop, erp = bench.sources()
    bench.change("translator", sources=[{**shop, "options": CLEAR}, erp])
    bench.stack.start("translator")
    wait_until("it is at work", PATIENCE, bench.is_at_work, bench.stack)
    bench.command("translator", "dlq", "replay", "--execute")
    bench.send(SHOP, update(3, table="held", both=False))


def _unknown_type(bench: Bench) -> None:
    bench.send(SHOP, *bench.rows(1, type="WHAT"))


def _letters_instead(bench: Bench) -> None:
    assert "UNKNOWN_OPERATION" in bench.command("translator", "status")
    bench.stack.stop("translator")
    bench.change("translator", on_error={"UNKNOWN_OPERATION": "dead_letter"})
    bench.stack.start("translator")
    wait_until("it is at work", PATIENCE, bench.is_at_work, bench.stack)


def _late(bench: Bench) -> None:
    hour_ago = int((time.time() - 3600) * 1000)
    with bench.streaming(lambda: bench.rows(1, es=hour_ago), pause=0.2):
        bench.prometheus.wait("TranslatorLag", fires=True)


def _fresh(bench: Bench) -> None:
    bench.send(SHOP, *bench.rows(1), partition=1)


def _keyless(bench: Bench) -> None:
    bench.send(SHOP, *bench.rows(2, table="keyless", pkNames=None))


def _waits(schema_id: str) -> Callable[[Bench], None]:
    return lambda bench: bench.send(ERP, unknown_row(schema_id))


def _teach(schema_id: str) -> Callable[[Bench], None]:
    return lambda bench: bench.send(ERP_METADATA, metadata(schema_id, "EMP", 1))


def _statement(bench: Bench) -> None:
    told = {"type": "ALTER", "data": None, "sql": "ALTER TABLE gone DROP PARTITION p", "isDdl": True}
    bench.send(SHOP, *bench.rows(1, table="gone", **told))


def _cascade(bench: Bench) -> None:
    key = "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE"
    told = {"type": "ALTER", "data": None, "sql": f"ALTER TABLE child ADD {key}", "isDdl": True}
    bench.send(SHOP, *bench.rows(1, table="child"), *bench.rows(1, table="child", **told))


def _conflict(bench: Bench) -> None:
    bench.send(ERP_METADATA, metadata("BBBB", "DEPT", 1), metadata("BBBB", "DEPT", 1, "OTHER"))


def _broker_away(bench: Bench) -> None:
    """Feed records first, because a partition's first record needs a lookup that fails during an outage."""
    with bench.streaming(lambda: bench.rows(200), pause=0.01):
        while not _killed_in_mid_batch(bench):
            bench.broker.start()
        bench.prometheus.wait("TranslatorStalled", fires=True)
        bench.broker.start()


def _killed_in_mid_batch(bench: Bench) -> bool:
    """Kill the broker. It can be between two batches."""
    before = bench.stack.committed().get((SHOP, 1), 0)
    wait_until("records flow", PATIENCE, lambda: bench.stack.committed().get((SHOP, 1), 0) > before, bench.stack)
    bench.broker.kill()
    time.sleep(3)  # Prometheus scrapes every second
    return bench.prometheus.value("cdc_batches_in_flight") > 0


def _come_and_go(bench: Bench) -> None:
    for _ in range(4):
        with bench.second_translator():
            pass


def _park(bench: Bench) -> None:
    """Park the table with the keyless rows of an earlier drill and more of them. The sink may have parked the table of
    the drill with a statement.
    """
    bench.send(SHOP, *bench.rows(2, table="keyless", pkNames=None))


def _mode_and_resume(bench: Bench) -> None:
    status = bench.command("sink", "status")
    assert KEYLESS in status
    bench.stack.stop("spark-sink")
    bench.change("sink", tables={"modes": {KEYLESS: "changelog"}})
    bench.stack.start("spark-sink")
    for table in (KEYLESS, GONE) if GONE in status else (KEYLESS,):
        bench.command("sink", "resume", table, "--wait", str(PATIENCE))


def _undecodable(bench: Bench) -> None:
    bench.send(CANONICAL, b"no event")


def _look_at_quarantine(bench: Bench) -> None:
    assert "UNDECODABLE" in bench.command("sink", "quarantine", "ls")


def _widen(bench: Bench) -> None:
    row = {"id": "1", "name": "a", "price": "1.50"}
    kinds = {"id": "bigint", "name": "varchar(10)", "price": "decimal(9,2)"}
    for kind, price in (("decimal(9,2)", "1.50"), ("decimal(20,8)", "1.00000001")):
        message = {"data": [{**row, "price": price}], "mysqlType": {**kinds, "price": kind}}
        bench.send(SHOP, *bench.rows(1, table="priced", **message))
        wait_until("it is applied", PATIENCE, lambda: bench.stack.rows("shop_shop.priced"), bench.stack)


def _view(bench: Bench) -> None:
    assert "price__v2" in bench.command("sink", "view", "shop_shop.priced")


def _delete_rows(bench: Bench) -> None:
    bench.send(SHOP, *bench.rows(3, table="compared"))
    wait_until("it is applied", PATIENCE, lambda: bench.stack.rows(COMPARED), bench.stack)
    bench.delete_rows(COMPARED)
    assert "missing: 3" in bench.command("sink", "verify", COMPARED, code=3)


def _rebuild(bench: Bench) -> None:
    bench.command("sink", "rebuild", COMPARED, "--wait", str(PATIENCE))
    bench.command("sink", "verify", COMPARED)


def _spark_hangs(bench: Bench) -> None:
    bench.send(SHOP, *bench.rows(30_000))
    wait_until("events wait", PATIENCE, lambda: bench.prometheus.value("cdc_sink_lag_records") > 0, bench.stack)
    bench.signal("spark-sink", signal.SIGSTOP, of_children=True)


def _restart_sink(bench: Bench) -> None:
    bench.signal("spark-sink", signal.SIGCONT, of_children=True)
    bench.stack.kill("spark-sink")
    bench.stack.start("spark-sink")


def _too_much(bench: Bench) -> None:
    """Feed more than batches of a thousand events can process."""
    with bench.streaming(lambda: bench.rows(1_000), pause=0.25):
        bench.prometheus.wait("SinkFallsBehind", fires=True)


def _larger_batches(bench: Bench) -> None:
    bench.stack.stop("spark-sink")
    bench.change("sink", batches={"max_offsets": 500_000})
    bench.stack.start("spark-sink")


def _metastore_away(bench: Bench) -> None:
    """Start the sink while the metastore runs, because it opens its catalog at startup. Then cut the metastore off."""
    conf = {"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": bench.start_metastore()}
    bench.stack.stop("spark-sink")
    bench.change("sink", catalog={"name": "spark_catalog"})
    bench.change_spark(conf)
    bench.stack.start("spark-sink")
    bench.send(SHOP, *bench.rows(1, table="known"))
    wait_until("it is applied", PATIENCE, lambda: bench.stack.rows("shop_shop.known"), bench.stack)
    bench.command("sink", "register", "shop_shop.known", "--wait", str(PATIENCE))
    bench.gate.shut()
    bench.send(SHOP, *bench.rows(1, table="unknown"))


def _metastore_back(bench: Bench) -> None:
    """Check that the log contains a readable reason."""
    (refused, *_) = (line for line in bench.stack.log("spark-sink").read_text().splitlines() if NOT_REGISTERED in line)
    assert "_LEGACY_ERROR" not in refused
    bench.gate.open()
    bench.command("sink", "register", "shop_shop.unknown", "--wait", str(PATIENCE))


def _file_away(bench: Bench) -> None:
    """Use a changelog. Appends do not read its files, so only maintenance finds the missing one."""
    bench.stack.stop("spark-sink")
    bench.change("sink", tables={"modes": dict.fromkeys((KEYLESS, CHANGELOG), "changelog")})
    bench.stack.start("spark-sink")
    for count in (1, 2):
        bench.send(SHOP, *bench.rows(1, table="log", pkNames=None))
        wait_until("it is applied", PATIENCE, partial(_has_files, bench, count), bench.stack)
    bench.stack.stop("spark-sink")
    bench.put_aside(CHANGELOG)
    # As often as possible: every two commits and every second.
    bench.change("sink", maintenance={"every_seconds": 1, "small_files": 2})
    bench.stack.start("spark-sink")
    with bench.streaming(lambda: bench.rows(1, table="log", pkNames=None), pause=1):
        bench.prometheus.wait("SinkMaintenanceFails", fires=True)
    assert "table maintenance failed, will retry" in bench.stack.log("spark-sink").read_text()


def _has_files(bench: Bench, count: int) -> bool:
    return len(bench.files(CHANGELOG)) >= count


def _file_back(bench: Bench) -> None:
    bench.put_back()
    bench.command("sink", "maintain", CHANGELOG, "--wait", str(PATIENCE))
    # A batch in progress can add one.
    wait_until("the files are few", PATIENCE, lambda: len(bench.files(CHANGELOG)) <= 2, bench.stack)


DRILLS = (
    Drill("TranslatorDown", "it was not started", _nothing, "it is started", _start_translator),
    Drill("TranslatorDeadLetters", "messages that are no JSON", _broken, "`dlq ls`, `dlq discard`", _look_and_discard),
    Drill("TranslatorLag", "events committed an hour ago", _late, "events committed now", _fresh),
    Drill(
        "TranslatorProjectionRefused",
        "rows without a key, for an upsert projection",
        _keyless,
        "ends by itself",
        _nothing,
    ),
    Drill(
        "TranslatorWaitsForMetadata",
        "a row of Qlik before its metadata",
        _waits("A1"),
        "the metadata message",
        _teach("A1"),
    ),
    Drill("TranslatorBehind", "another row that waits", _waits("C3"), "its metadata message", _teach("C3")),
    Drill("TranslatorMetadataConflict", "two metadata messages with one id", _conflict, "ends by itself", _nothing),
    Drill("TranslatorStatementNotApplied", "a partition is dropped", _statement, "ends by itself", _nothing),
    Drill(
        "TranslatorRebalances", "a second process comes and goes four times", _come_and_go, "ends by itself", _nothing
    ),
    Drill(
        "TranslatorTablesHeld",
        "an update that its profile cannot read, under `hold_table`",
        _ambiguous,
        "the option corrected, `dlq replay`",
        _correct_and_replay,
    ),
    Drill(
        "TranslatorPartitionStopped",
        "a message of an unknown type, with `stop`",
        _unknown_type,
        "`dead_letter` for its code",
        _letters_instead,
    ),
    Drill("TranslatorStalled", "the broker is killed while records flow", _broker_away, "the broker is back", _nothing),
    Drill(
        "TranslatorDown",
        "the process is stopped (SIGSTOP): stuck",
        _hang,
        "killed and started, as its probe does",
        _kill_and_start,
    ),
    Drill("SinkDown", "it was not started", _nothing, "it is started", _start_sink),
    Drill("SinkTablesParked", "a table without a key", _park, "`tables.modes`, `spark-sink resume`", _mode_and_resume),
    Drill(
        "SinkQuarantine",
        "a record that is no event",
        _undecodable,
        "`quarantine ls`; ends by itself",
        _look_at_quarantine,
    ),
    Drill("SinkRowsUnaccounted", "a foreign key cascades", _cascade, "ends by itself", _nothing),
    Drill(
        "SinkColumnsBeside", "decimal(9,2) becomes decimal(20,8)", _widen, "`spark-sink view`; ends by itself", _view
    ),
    Drill(
        "SinkTableDiffers",
        "another program deletes rows",
        _delete_rows,
        "`spark-sink rebuild`, `spark-sink verify`",
        _rebuild,
    ),
    Drill(
        "SinkStalled",
        "Spark is stopped (SIGSTOP) while events wait",
        _spark_hangs,
        "the sink is killed and started",
        _restart_sink,
    ),
    Drill(
        "SinkFallsBehind",
        "more events than batches of 1 000 take",
        _too_much,
        "a larger `batches.max_offsets`",
        _larger_batches,
    ),
    Drill(
        "SinkCatalogRefuses",
        "a Hive metastore is cut off, and a new table comes",
        _metastore_away,
        "it answers again, `spark-sink register`",
        _metastore_back,
    ),
    Drill(
        "SinkMaintenanceFails",
        "a data file of a table is taken away",
        _file_away,
        "the file is put back, `spark-sink maintain`; six minutes later",
        _file_back,
    ),
)
