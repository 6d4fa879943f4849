"""The counters of an acknowledged batch, as Prometheus reads them."""

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from translator.runtime.metrics import Metrics, Tally


def test_account() -> None:
    """A batch is added whole: what became of its records, and beside it the events and what was written of them."""
    metrics = Metrics("1.2.3")
    tally = Tally(
        "erp", "raw", 3, records=7, translated=3, learned=1, dead=Counter(TOO_LARGE=1), skipped=Counter(empty=2)
    )
    tally.events.update({"u": 4, "schema": 1})
    tally.written.update({"cdc.canonical": 5, "cdc.debezium": 6})
    tally.refused["cdc.debezium", "UNSUPPORTED_SHAPE"] = 2
    metrics.account(tally)
    found = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            if sample.name.endswith("_total"):
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
        ("records_out_total", "cdc.canonical"): 5,
        ("records_out_total", "cdc.debezium"): 6,
        ("records_refused_total", "UNSUPPORTED_SHAPE", "cdc.debezium"): 2,
    } == found
