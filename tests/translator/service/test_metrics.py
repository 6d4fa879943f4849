"""The counters of an acknowledged batch, as Prometheus reads them."""

import time
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cdc_core.envelope import ChangeEvent, Context, Ddl, Detail, Origin
from translator.message import Counted
from translator.service.metrics import BatchAccount, Metrics


def test_account() -> None:
    """A batch is counted as a whole: the results of its records, the events, and what was written."""
    metrics = Metrics("1.2.3", tables=1)
    account = BatchAccount(
        "erp", "raw", 3, records=7, translated=3, learned=1, dead=Counter(TOO_LARGE=1), skipped=Counter(empty=2)
    )
    first, beyond = Counted("shop", None, "t", "u"), Counted(None, None, "t", "u")
    account.changes.update({first: 3, beyond: 1, Counted("shop", None, None, "schema"): 1})
    account.written.update({"cdc.canonical": 5, "cdc.debezium": 6})
    account.refused["cdc.debezium", "UNSUPPORTED_SHAPE"] = 2
    metrics.account(account)
    found = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            if sample.name == "cdc_table_events_total":
                found["table_events_total", sample.labels["table"]] = sample.value
            elif sample.name.endswith("_total") and sample.labels:
                where = [sample.labels.pop(name) for name in ("source", "topic", "partition")]
                assert ["erp", "raw", "3"] == where
                found[sample.name.removeprefix("cdc_"), *sample.labels.values()] = sample.value
    assert {
        ("records_in_total",): 7,
        ("records_translated_total",): 3,
        ("records_learned_total",): 1,
        ("records_dead_total", "TOO_LARGE"): 1,
        ("records_skipped_total", "empty"): 2,
        ("events_out_total", "u"): 4,
        ("events_out_total", "schema"): 1,
        ("table_events_total", "shop.t"): 3,
        ("table_events_total", "other"): 1,
        ("records_out_total", "cdc.canonical"): 5,
        ("records_out_total", "cdc.debezium"): 6,
        ("records_refused_total", "UNSUPPORTED_SHAPE", "cdc.debezium"): 2,
    } == found


def samples(metrics: Metrics, name: str) -> list[tuple[dict[str, str], float]]:
    families = text_string_to_metric_families(metrics.exposition().decode())
    return [(sample.labels, sample.value) for family in families for sample in family.samples if sample.name == name]


def test_a_hostile_stream_of_names() -> None:
    """Ten thousand tables get at most the allowed number of series, and everything is counted."""
    metrics = Metrics("1.2.3", tables=50)
    for number in range(10_000):
        account = BatchAccount("erp", "raw", 3, records=1)
        account.changes[Counted("shop", None, f"t{number}", "c")] += 1
        metrics.account(account)
    found = samples(metrics, "cdc_table_events_total")
    assert (51, 10_000) == (len(found), sum(count for _, count in found))
    assert [9_950] == [count for labels, count in found if labels["table"] == "other"]
    assert {"source", "table", "op"} == {label for labels, _ in found for label in labels}


def test_a_name_without_end() -> None:
    """An overlong name is counted among the others, even if there is room."""
    metrics = Metrics("1.2.3", tables=50)
    account = BatchAccount("erp", "raw", 3, records=1)
    account.changes[Counted("shop", None, "t" * 10_000, "c")] += 1
    metrics.account(account)
    assert [{"source": "erp", "table": "other", "op": "c"}] == [
        labels for labels, _ in samples(metrics, "cdc_table_events_total")
    ]


def test_lag() -> None:
    """The lag is based on the last commit of a batch. Without commit times, it is unknown and not zero."""
    metrics = Metrics("1.2.3")
    metrics.account(BatchAccount("silent", "raw", 3, records=1))
    metrics.account(BatchAccount("erp", "raw", 3, records=1, newest_us=int((time.time() - 3_600) * 1e6)))
    ((labels, lag),) = samples(metrics, "cdc_source_lag_seconds")
    assert {"source": "erp"} == labels
    assert 3_599 < lag < 7_200


def batch_in_stages(source: str, middle_record_ms: int | None) -> BatchAccount:
    """Return a batch that was in the queue for 1 s, was translated in 2 s, and has been in delivery for 3 s."""
    now = time.monotonic()
    account = BatchAccount(source, "raw", 3, records=1, middle_record_ms=middle_record_ms)
    account.fetched, account.begun, account.sent = now - 6, now - 5, now - 3
    return account


def test_stages() -> None:
    """Each stage begins where the previous one ends. Outside the service, no stage is measured."""
    metrics = Metrics("1.2.3")
    metrics.account(batch_in_stages("erp", int((time.time() - 10) * 1000)))
    metrics.account(BatchAccount("replayed", "raw", 3, records=1, middle_record_ms=1))
    found = {tuple(labels.values()): took for labels, took in samples(metrics, "cdc_latency_seconds_sum")}
    assert {("erp", stage) for stage in ("fetch", "queue", "translate", "deliver")} == found.keys()
    assert (1, 2) == pytest.approx((found["erp", "queue"], found["erp", "translate"]))
    assert 3 <= found["erp", "deliver"] < 600
    assert 3.9 < found["erp", "fetch"] < 600
    assert {1} == {count for _, count in samples(metrics, "cdc_latency_seconds_count")}


def test_a_producer_with_another_clock() -> None:
    """A timestamp in the future counts as zero, because a histogram's sum must not decrease. Without a timestamp, only
    the other stages are known.
    """
    metrics = Metrics("1.2.3")
    metrics.account(batch_in_stages("fast", 2**63 - 1))
    metrics.account(batch_in_stages("silent", None))
    found = {tuple(labels.values()): took for labels, took in samples(metrics, "cdc_latency_seconds_sum")}
    assert 0 == found["fast", "fetch"]
    assert {"queue", "translate", "deliver"} == {stage for source, stage in found if source == "silent"}


def test_no_place_is_a_label() -> None:
    """Offsets and positions as labels would create a series for every record."""
    metrics = Metrics("1.2.3", tables=1)
    account = BatchAccount("erp", "raw", 3, records=1)
    account.changes[Counted("shop", None, "t", "c")] += 1
    metrics.account(account)
    metrics.account(batch_in_stages("erp", 1))
    families = text_string_to_metric_families(metrics.exposition().decode())
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert {
        "source",
        "topic",
        "partition",
        "table",
        "op",
        "code",
        "reason",
        "output",
        "version",
        "plugins",
        "hash",
        "stage",
        "le",
    } >= labels


def test_the_newest_commit_of_a_table() -> None:
    """The latest commit over all partitions and operations, for tables with a label. Schemas and tables without commit
    times have none.
    """
    metrics = Metrics("1.2.3", tables=1)
    insert, update = Counted("shop", None, "t", "c"), Counted("shop", None, "t", "u")
    beyond, schema = Counted("shop", None, "more", "c"), Counted("shop", None, None, "schema")
    for partition, committed in enumerate((1_000_000, 3_000_000, 2_000_000)):
        account = BatchAccount("erp", "raw", partition, records=4)
        account.changes.update({insert: 1, update: 1, beyond: 1})
        account.committed_us.update({insert: committed, update: 500_000, beyond: committed, schema: committed})
        metrics.account(account)
    assert [({"source": "erp", "table": "shop.t"}, 3.0)] == samples(metrics, "cdc_table_commit_timestamp_seconds")


def test_one_name() -> None:
    """Batches add up. Two tables whose names read the same share one series."""
    metrics = Metrics("1.2.3", tables=2)
    for _ in range(2):
        account = BatchAccount("erp", "raw", 0, records=2)
        for at, counted in enumerate((Counted("shop", "a", "t", "c"), Counted(None, "shop.a", "t", "c")), 1):
            account.changes[counted] += at
            account.committed_us[counted] = at * 1_000_000
        metrics.account(account)
    labels = {"source": "erp", "table": "shop.a.t"}
    assert [({**labels, "op": "c"}, 6.0)] == samples(metrics, "cdc_table_events_total")
    assert [(labels, 2.0)] == samples(metrics, "cdc_table_commit_timestamp_seconds")


def test_statements() -> None:
    """Statements are counted by table and note, separately from other notes. The usual limit on names applies."""
    metrics = Metrics("1.2.3", tables=1)
    account = BatchAccount("erp", "raw", 3, records=3)
    account.count(
        [
            statement("a", ["DEFAULT_FILLED=x:int32", "DEFAULT_FILLED=y:string", "SQL_NAMES_ANOTHER_TABLE"]),
            statement("b", ["TABLE_DROPPED"]),
            statement(None, ["TABLE_DROPPED"]),
            statement("a", None),
        ]
    )
    metrics.account(account)
    assert {
        ("a", "DEFAULT_FILLED"): 1,
        ("other", "TABLE_DROPPED"): 1,
        ("all", "TABLE_DROPPED"): 1,
    } == {
        (found["table"].removeprefix("shop."), found["note"]): count
        for found, count in samples(metrics, "cdc_statements_not_applied_total")
    }


def statement(table: str | None, notes: list[str] | None) -> ChangeEvent:
    """Return the announcement of a statement."""
    at = Context(
        *("i", "erp", "canal", None, None, None, None, None, "shop", None, table, "p", "s", None, None, None, 0, None),
        *(None, Origin("raw", 3, 0, 0, 0)),
    )
    return ChangeEvent.schema_change(at, Ddl("ALTER"), Detail(notes=notes))
