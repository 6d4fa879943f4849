"""Create the components of the service from its settings: translators, codecs, the registry, transactions."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog

from translator import _native
from translator.config.settings import Settings
from translator.kafka.admin import TopicAdmin
from translator.kafka.table_topics import TableTopics, limit_of
from translator.kafka.transactional_producer import TransactionalProducer, transactional_config
from translator.resolution.resolve import Outputs
from translator.service.delivery.base import Delivery
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.metrics import BatchAccount, Metrics
from translator.translation.native_path import NativePath, PathDifference, native_path
from translator.translation.translate import Translator

log = structlog.get_logger("translator")


def build_native_paths(
    settings: Settings, translators: Mapping[str, Translator], outputs: Outputs, metrics: Metrics
) -> dict[str, NativePath]:
    """Return the native path of each source that has one. For all other sources, log why they have none."""
    wanted = [(output.codec, output.to.max_bytes) for output in outputs.events]
    paths = {}
    for source, translator in translators.items():
        report = partial(_report_difference, metrics, source)
        found = "native: off" if settings.native == "off" else native_path(translator, wanted, report)
        if isinstance(found, str):
            log.info("native path", source=source, taken="nothing", reason=found)
        else:
            log.info("native path", source=source, taken="common rows", way=_native.way())
            metrics.native_disabled.labels(source).set(0)
            paths[source] = found
    return paths


def _report_difference(metrics: Metrics, source: str, found: PathDifference) -> None:
    """Log a difference between the two paths, and set the metric for the alert."""
    metrics.native_disabled.labels(source).set(1)
    log.error(
        "native path disabled",
        source=source,
        topic=found.topic,
        partition=found.partition,
        offset=found.offset,
        native_sha256=found.native,
        plain_sha256=found.plain,
        reason="the native and the plain path differ for this message; the plain result was written",
        remedy="set native: off, report the problem, and check the output since the start with translator audit",
    )


def build_table_topics(settings: Settings, topics: TopicAdmin, canonical: int) -> dict[str, TableTopics]:
    """Return the topics of each projection that has a template, by the template's text.

    Args:
        canonical: the canonical topic's maximum record size.

    Raises:
        ConfigError: a projection's record size is not a number.
    """
    return {
        one.topic: TableTopics(topics, settings, one, one.template, limit_of(one, canonical), log.warning)
        for one in settings.projections
        if one.template is not None
    }


def open_transactions(
    settings: Settings,
    config: Mapping[str, Any],
    outside: Delivery,
    on_account: Callable[[BatchAccount], None],
    on_end: Callable[[float], None],
    note: Callable[[str], str],
) -> ExactlyOnceDelivery:
    """Return the delivery that writes transactions.

    Args:
        on_end: called after each transaction, with the seconds that it took to end the transaction.
    """
    seconds = settings.timing.delivery
    name = transactional_id(settings)
    log.info("transactions", transactional_id=name)
    config = transactional_config(config, name, seconds)
    return ExactlyOnceDelivery(
        TransactionalProducer.from_config(config),
        outside,
        on_account,
        note,
        on_end,
        seconds,
        settings.bounds,
        settings.latency.transaction_ms / 1000,
    )


def transactional_id(settings: Settings) -> str:
    """Return a name that no other running process uses. The next process on the same host uses the same name. It can
    therefore immediately end the transaction that a killed process left open. If several processes run on one host, the
    probe port distinguishes them.
    """
    return f"{settings.group}-{socket.gethostname()}-{settings.web.port}"
