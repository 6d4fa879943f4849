"""Metrics registries of both programs, with values in each kind of metric."""

import time
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
from prometheus_client import CollectorRegistry

import spark_sink.metrics
from spark_sink.table_report import Latency
from tests.spark_sink.records import report
from translator.message import Counted
from translator.service.metrics import BatchAccount, Metrics


def registries() -> Mapping[str, CollectorRegistry]:
    """Return the registries by program name."""
    return {"translator": _translator(), "spark-sink": _sink()}


def _translator() -> CollectorRegistry:
    metrics = Metrics("1.2.3", tables=2)
    account = BatchAccount("erp", "raw", 3, records=7, translated=3, dead=Counter(TOO_LARGE=1), newest_us=1)
    update = Counted("shop", None, "t", "u")
    account.changes[update] = 3
    account.committed_us[update] = 1
    account.fetched = account.begun = account.sent = time.monotonic()
    metrics.account(account)
    metrics.transactions.observe(0.25)
    metrics.transactions.observe(0.5)
    return metrics.registry


def _sink() -> CollectorRegistry:
    metrics = spark_sink.metrics.Metrics(2)
    now = 1_700_000_000_000_000
    latency = Latency.of(pa.chunked_array([[now - 1_500_000, now - 40_000_000, 0]], pa.int64()), now)
    metrics.batch([report("t", events=5, commits=1, latency=latency)], {}, {"total": 1.5})
    return metrics.registry
