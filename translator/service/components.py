"""The components of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from translator.config.settings import Settings
from translator.kafka.admin import TopicAdmin
from translator.kafka.subscription import Subscribed
from translator.kafka.topic_reader import TopicReader
from translator.service.delivery.base import Delivery
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.lag import RawTopicLag
from translator.service.lineage import ServiceLineage
from translator.service.metadata_wait import MetadataWaiter
from translator.service.metrics import Metrics
from translator.service.pipeline import Pipeline, Target
from translator.service.start_offsets import StartOffsets
from translator.service.summary import Summary
from translator.state.contradiction_marks import Contradictions
from translator.state.hold_journal import TopicJournal
from translator.state.table_holds import Holds
from translator.translation.metadata_catalog import MetadataCatalog, Named
from translator.translation.translate import Translator


class Components(Struct):
    """The components of the running service."""

    settings: Settings
    client: Mapping[str, Any]  # connection settings
    topics: TopicAdmin
    subscribed: Subscribed
    catalog: MetadataCatalog
    translators: dict[str, Translator]  # by source
    contradictions: Contradictions
    positions: StartOffsets
    reader: TopicReader
    delivery: Delivery
    metrics: Metrics
    waiter: MetadataWaiter
    pipeline: Pipeline
    outdated: set[Named]
    """Metadata to write again, because the last record in the metadata topic is not the newest document."""
    target: Target
    holds: Holds
    journal: TopicJournal
    lag: RawTopicLag
    summary: Summary
    lineage: ServiceLineage | None
    """None if lineage is not reported."""

    @property
    def transactions(self) -> ExactlyOnceDelivery | None:
        """The delivery if it writes transactions, otherwise None."""
        return self.delivery if isinstance(self.delivery, ExactlyOnceDelivery) else None
