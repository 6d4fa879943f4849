"""The whole configuration as types. cdc_core.config reads the file.

An unknown name is an error at startup. The error suggests the nearest known name. Dialects and codecs check their own
options.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import AwareDatetime, Field, PrivateAttr, ValidationInfo, model_validator

from cdc_core import config
from cdc_core.config_mistakes import SettingsFile
from cdc_core.kafka_settings import Kafka as Kafka
from cdc_core.kafka_settings import Section
from cdc_core.lineage.settings import Lineage
from cdc_core.otlp import Otlp
from translator.config.masks import MasksSettings as MasksSettings
from translator.config.projections import Projection as Projection
from translator.config.projections import TableChoiceSettings, TopicName, check_templates
from translator.config.registry import Registry as Registry
from translator.config.setting_types import Name, Start, TopicPattern, is_pattern, matches
from translator.config.topic_template import TopicTemplate
from translator.errors import ConfigError, ErrorCode
from translator.message import DeclaredTable, Limits


class TopicsSettings(Section):
    """Settings for creating the topics that the translator writes."""

    create: bool = Field(
        default=True,
        description="Create missing topics. If false, the translator does not start while a topic is missing.",
    )
    partitions: int = Field(
        default=4,
        ge=1,
        description="Number of partitions to create in new event topics and in a new dead-letter topic.",
    )
    replication_factor: int | None = Field(
        default=None,
        ge=1,
        description="Replication factor to use for new topics. Defaults to the broker's default.",
    )


class Output(Section):
    """The canonical topic and its format. The names of the other topics are derived from the canonical topic's name."""

    topic: TopicName = Field(default="cdc.canonical", description="Name of the canonical topic.")
    codec: Literal["avro", "json"] = Field(
        default="avro", description="Format of the events, as described in docs/envelope.md."
    )
    include: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables to write to the canonical topic. By default, all tables are written."
    )
    exclude: tuple[TableChoiceSettings, ...] = Field(
        default=(),
        description="Tables to leave out of the canonical topic. This setting takes precedence over `include`.",
    )

    @property
    def schemas_topic(self) -> str:
        """Compacted topic with table schemas."""
        return f"{self.topic}.schemas"

    @property
    def metadata_topic(self) -> str:
        """Compacted topic with learned source metadata."""
        return f"{self.topic}.metadata"

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}.dlq"


class TableSettings(Section):
    """A declared table; see message.DeclaredTable."""

    table: str = Field(description="Pattern for the table's name as the source writes it. `*` and `?` are wildcards.")
    key: tuple[str, ...] = Field(default=(), description="Key columns of the table, in key order.")
    columns: dict[str, str] | None = Field(
        default=None,
        description=(
            "Canonical types of all columns in the table, in table order. If empty, only the key is declared."
        ),
    )

    def declared(self) -> DeclaredTable:
        return DeclaredTable(self.table, self.key, self.columns)


class Source(Section):
    """A replication task and the raw topics that it writes."""

    name: Name = Field(description="Name of the source. Never change this name, because every event contains it.")
    dialect: str = Field(
        description=(
            "Product that writes the messages. One of qlik, dts_avro, shareplex and canal, or the name of an "
            "installed dialect plug-in."
        ),
        # For editors and the chart, which do not know the plug-ins. The program's own error suggests the closest name.
        json_schema_extra={
            "examples": ["qlik", "dts_avro", "shareplex", "canal"],
            "pattern": "^[a-z][a-z0-9_]{0,39}$",
        },
    )
    topics: tuple[TopicPattern, ...] = Field(
        min_length=1, description="Topic names, or patterns with * and ?. Patterns also match topics created later."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the dialect.")
    tables: tuple[TableSettings, ...] = ()
    metadata_topics: tuple[TopicPattern, ...] = Field(
        default=(),
        description=(
            "Entries of `topics` that contain metadata messages. The translator reads these topics completely "
            "before it translates any data."
        ),
    )
    start: Start | None = Field(
        default=None, description="Start position for this source. Overrides the global `start`."
    )
    order: Literal["arrival", "native"] = Field(
        default="arrival",
        description=(
            "How to order changes to the same row: by their position in the raw partition (arrival), or by the "
            "source's own sequence (native)."
        ),
    )
    epochs: tuple[AwareDatetime, ...] = Field(
        default=(),
        max_length=9_999,
        description=(
            "Times at which the source's sequence restarts, for example after a reload. Only for `order: native`. "
            "Sequence values from before such a time cannot be compared with later ones."
        ),
    )
    task: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the replication task, for messages that do not contain one. Only for `order: native`.",
    )

    @model_validator(mode="after")
    def _metadata_topics_are_topics(self) -> Source:
        for topic in self.metadata_topics:
            if not is_pattern(topic) and not any(matches(topic, entry) for entry in self.topics):
                raise ValueError(f"metadata topic {topic} is not listed in topics")
        return self

    @model_validator(mode="after")
    def _native_order_is_whole(self) -> Source:
        if self.order != "native" and (self.epochs or self.task):
            raise ValueError("epochs and task require order: native")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError("epochs must be in ascending order")
        return self


class Web(Section):
    """HTTP endpoints for probes and metrics: /livez, /readyz, /metrics."""

    host: str = Field(default="127.0.0.1", description="Address to listen on. Use 0.0.0.0 in a container.")
    port: int = Field(default=8080, ge=1, le=65535, description="Port for probes and metrics.")


class MetricsSettings(Section):
    """Settings for metrics per table and for pushing metrics."""

    tables: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="Number of tables that get their own metric series. All other tables share the series `other`.",
    )
    otlp: Otlp | None = Field(
        default=None,
        description="OpenTelemetry endpoint to push metrics to. If unset, metrics are served only at /metrics.",
    )


class Timing(Section):
    """Timeouts and intervals, in seconds. The times must be in order: delivery < rebalance < the grace period of the
    pod.
    """

    session: float = Field(
        default=30,
        gt=0,
        description=(
            "Session timeout. If a member sends no heartbeat for this long, the group gives its partitions to "
            "other members."
        ),
    )
    rebalance: float = Field(
        default=60,
        gt=0,
        description="Maximum time to finish work in progress before a rebalance hands over the partitions.",
    )
    delivery: float = Field(
        default=40,
        gt=0,
        description="Maximum time to deliver a record. When this time is up, the service stops with exit code 1.",
    )
    commit_interval: float = Field(default=1, gt=0, description="Interval between offset commits.")
    stuck: float = Field(
        default=60,
        gt=0,
        description=(
            "If the process makes no progress for this long, it exits. The limit applies to the event loop, and to "
            "deliveries and rebalances that have exceeded their own limits."
        ),
    )
    metadata_wait: float = Field(default=10, ge=0, description="How long a message waits for its metadata to arrive.")
    topic_refresh: float = Field(
        default=60,
        gt=0,
        description="How often the service checks for recreated topics and for new topics that match a pattern.",
    )
    broker_wait: float = Field(
        default=120, ge=0, description="How long to wait at startup for the brokers and the registry to respond."
    )
    summary: float = Field(
        default=60, ge=0, description="Interval between summary lines in the log. 0 disables the summary."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Timing:
        if self.delivery >= self.rebalance:
            raise ValueError(
                "timing.delivery must be less than timing.rebalance, because otherwise a drain cannot finish in time"
            )
        return self


class LatencySettings(Section):
    """Times in milliseconds for which work is collected. Shorter times reduce latency but cost more processor time."""

    linger_ms: int = Field(
        default=3,
        ge=0,
        le=500,
        description=(
            "How long the producer collects records for a partition before it sends them. It sends a full request "
            "immediately. A lower value makes each record readable sooner. A higher value leads to fewer, larger "
            "and better compressed requests."
        ),
    )
    transaction_ms: int = Field(
        default=80,
        ge=5,
        le=500,
        description=(
            "With delivery: exactly_once, how long a transaction accepts records. Consumers cannot see a record "
            "until its transaction ends, so this time adds to the latency. A lower value leads to more "
            "transactions per second. If it takes long to end a transaction, the translator makes transactions "
            "longer automatically, up to 200 ms."
        ),
    )
    fetch_ms: int = Field(
        default=20,
        ge=0,
        le=500,
        description=(
            "Minimum time between two requests for messages to the same broker. One request costs as much "
            "processor time as hundreds of messages. At low message rates, a higher value therefore saves "
            "processor time. Half of this time adds to the median latency. With 0, the service requests more "
            "messages as soon as it has passed on the previous ones."
        ),
    )
    fetch_wait_ms: int = Field(
        default=50,
        ge=1,
        le=500,
        description=(
            "How long a broker may wait for new messages before it responds. A newly assigned partition has to "
            "wait for this response, so a lower value reduces latency. An idle process sends one request per "
            "broker in this time, so a higher value reduces the load."
        ),
    )


class Bounds(Section):
    """Limits on the work in progress in one process. When a limit is reached, reading pauses."""

    batches: int = Field(
        default=64, ge=1, description="Maximum number of batches that have been translated but not delivered."
    )
    events: int = Field(
        default=100_000,
        ge=1,
        description="Maximum number of undelivered records in the producer, across all outputs.",
    )
    bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1024,
        description=(
            "Maximum total size, in bytes, of the raw records that are waiting for translation. The same limit "
            "applies separately to the records that are waiting for delivery."
        ),
    )


class InputLimits(Section):
    """Limits for all input; see message.Limits."""

    value_bytes: int = Field(default=Limits().value_bytes, ge=1, description="Maximum size of a raw value, in bytes.")
    json_depth: int = Field(default=Limits().json_depth, ge=1, le=500, description="Maximum nesting depth of JSON.")
    columns: int = Field(default=Limits().columns, ge=1, description="Maximum number of columns per row.")
    rows: int = Field(
        default=Limits().rows,
        ge=1,
        le=999_999,
        description="Maximum number of rows per message. The position `pos` has six digits for the row number.",
    )
    schema_text_bytes: int = Field(
        default=Limits().schema_text_bytes, ge=1, description="Maximum size of the text of an Avro schema, in bytes."
    )
    schema_depth: int = Field(
        default=Limits().schema_depth, ge=1, le=64, description="Maximum nesting depth of an Avro schema."
    )
    issue_raw_chars: int = Field(
        default=Limits().issue_raw_chars,
        ge=0,
        description="Maximum number of characters in `issues[].raw`. Longer values are truncated.",
    )
    schemas: int = Field(
        default=Limits().schemas,
        ge=1,
        description=(
            "Maximum number of table schemas per source. Every version of a table counts. Once the limit is "
            "reached, messages with new schemas become dead letters."
        ),
    )
    metadata_bytes: int = Field(
        default=Limits().metadata_bytes,
        ge=1,
        description=(
            "Maximum total size of a source's metadata documents, in bytes. Once the limit is reached, new "
            "metadata messages become dead letters."
        ),
    )
    topics: int = Field(
        default=Limits().topics,
        ge=1,
        description=(
            "Maximum number of topics that a process writes for a projection whose topics are named after tables. "
            "Once the limit is reached, messages for any other topic become dead letters of the projection."
        ),
    )

    def limits(self) -> Limits:
        return Limits(**self.model_dump())


class Settings(Section):
    """The configuration of `translator run -c FILE`."""

    group: Name = Field(
        default="cdc-translator", description="Consumer group. The Faust app has the same name as the group."
    )
    group_instance_id: Name | None = Field(
        default=None,
        description=(
            "Name for static membership. The name must be unique to this process and stay the same after a "
            "restart. In a StatefulSet, use the name of the pod: ${POD_NAME}. If the process restarts within "
            "`timing.session`, it gets its partitions back."
        ),
    )
    kafka: Kafka
    topics: TopicsSettings = TopicsSettings()
    output: Output = Output()
    projections: tuple[Projection, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    start: Start = Field(
        default="earliest",
        description=(
            "Where to start in partitions that have no committed offset: earliest, latest, or a time in ISO 8601 "
            "format."
        ),
    )
    registry: Registry | None = None
    delivery: Literal["at_least_once", "exactly_once"] = Field(
        default="at_least_once",
        description=(
            "Delivery guarantee. With `exactly_once`, the translator writes events in transactions. Consumers that "
            "read only committed records then see every event exactly once."
        ),
    )
    on_error: dict[ErrorCode, Literal["dead_letter", "hold_table", "stop"]] = Field(
        default_factory=dict,
        description=(
            "What to do with a message that cannot be translated, depending on the error code. By default, the "
            "message becomes a dead letter. `hold_table` also holds later messages for the same table until you "
            "replay them in order. `stop` stops the message's partition until you change the configuration, while "
            "other partitions continue. The code CONTRADICTION means that a message contradicts the options of its "
            "source. It stops the source by default. With `hold_table`, it holds the message's whole partition."
        ),
    )
    masks: MasksSettings = MasksSettings()
    native: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "Use of the native path. With `auto`, common messages take the native path if it was built. The output "
            "is byte-identical. The environment variable CDC_NATIVE=off also turns off the native path."
        ),
    )
    web: Web = Web()
    metrics: MetricsSettings = MetricsSettings()
    lineage: Lineage | None = Field(
        default=None,
        description=(
            "OpenLineage receiver for events about the raw topics, the canonical topic, columns and masks. If "
            "unset, nothing is reported."
        ),
    )
    timing: Timing = Timing()
    latency: LatencySettings = LatencySettings()
    bounds: Bounds = Bounds()
    limits: InputLimits = InputLimits()
    log_format: Literal["json", "console", "auto"] = Field(
        default="auto", description="Format of the log. `auto` means console on a terminal and json otherwise."
    )
    log_level: Literal["info", "warning", "error"] = Field(
        default="info",
        description=(
            "Minimum level of log lines. A failure is always logged before the process ends, regardless of the level."
        ),
    )

    @property
    def raw_topics(self) -> list[str]:
        """The `topics` entries of all sources, which are names and patterns."""
        return [topic for source in self.sources for topic in source.topics]

    @property
    def event_topics(self) -> list[str]:
        """The topics that receive events: the canonical topic, then projections with a single topic."""
        return [self.output.topic, *(one.topic for one in self.projections if one.template is None)]

    @property
    def templates(self) -> list[TopicTemplate]:
        """The topic templates of projections that write several topics."""
        return [one.template for one in self.projections if one.template is not None]

    @property
    def written_topics(self) -> list[str]:
        """Every topic that is written, except topics from templates."""
        output = self.output
        return [*self.event_topics, output.dead_letter_topic, output.schemas_topic, output.metadata_topic]

    def writes(self, topic: str) -> bool:
        """Return whether a topic is written. This includes topics from templates, whether or not they exist yet."""
        return topic in self.written_topics or any(topic.startswith(one.prefix) for one in self.templates)

    @property
    def masked_sources(self) -> frozenset[str]:
        """The sources with masks, whose original messages must not be written or shown."""
        if self.masks.messages == "keep":
            return frozenset()
        return frozenset(source.name for source in self.sources if self.masks.rules_of(source.name))

    @property
    def digest(self) -> str:
        """A digest that identifies this configuration. Secrets are not part of the digest."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def codes(self, policy: str) -> frozenset[ErrorCode]:
        """Return the error codes that have this policy."""
        return frozenset(code for code, chosen in self.on_error.items() if chosen == policy)

    _file: SettingsFile | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _comes_from_a_file(self, info: ValidationInfo) -> Settings:
        if info.context is not None:
            self._file = info.context.get(config.FILE)
        return self

    def refuse(self, wrong: Sequence[tuple[tuple[int | str, ...], ConfigError]]) -> None:
        """Raise a single error for all mistakes, each with its location in the file. Do nothing if the list is
        empty.
        """
        if not wrong:
            return
        if self._file is not None:
            raise self._file.refusal(wrong)
        raise ConfigError("; ".join(str(error) for _, error in wrong))

    @model_validator(mode="after")
    def _held_is_no_error(self) -> Settings:
        if ErrorCode.HELD in self.on_error:
            raise ValueError(
                "on_error: HELD cannot have a policy, because hold_table gives this code to later messages of a "
                "held table"
            )
        if self.on_error.get(ErrorCode.CONTRADICTION) == "dead_letter":
            raise ValueError(
                "on_error: CONTRADICTION can only stop the source (stop, the default) or hold the partition "
                "(hold_table). With dead_letter, later messages would be misread"
            )
        return self

    @model_validator(mode="after")
    def _masks_have_sources(self) -> Settings:
        for rule in self.masks.rules:
            if not any(rule.rule().matches_source(source.name) for source in self.sources):
                raise ValueError(f"masks: a rule refers to source {rule.source}, which does not exist")
        return self

    @model_validator(mode="after")
    def _unambiguous(self) -> Settings:
        self.refuse([(place, ConfigError(text)) for place, text in self._ambiguities()][:1])
        return self

    def _ambiguities(self) -> Iterator[tuple[tuple[int | str, ...], str]]:
        """Yield each name that is used more than once, with the location of its second use."""
        names = [source.name for source in self.sources]
        for number, name in enumerate(names):
            if name in names[:number]:
                yield ("sources", number), f"source name {name} is used more than once"
        for topic in self.written_topics:
            if self.written_topics.count(topic) > 1:
                yield (
                    ("projections",) if self.projections else ("output",),
                    f"output topic {topic} is used more than once",
                )
        owner_of: dict[str, str] = {}
        for number, source in enumerate(self.sources):
            place = "sources", number, "topics"
            for topic in source.topics:
                owner = owner_of.setdefault(topic, source.name)
                if owner != source.name:
                    yield place, f"topic {topic} is claimed by more than one source: {owner} and {source.name}"
                elif source.topics.count(topic) > 1:
                    yield place, f"source {owner} lists topic {topic} twice"
                if self.writes(topic):
                    yield place, f"topic {topic} cannot be both an input and an output"

    @model_validator(mode="after")
    def _lineage_is_apart(self) -> Settings:
        topic = None if self.lineage is None else self.lineage.topic
        if topic is not None and (self.writes(topic) or any(matches(topic, one) for one in self.raw_topics)):
            raise ValueError(f"lineage.to: the topic {topic} is already an input or output of this configuration")
        return self

    @model_validator(mode="after")
    def _templates_are_apart(self) -> Settings:
        check_templates(self.projections, self.written_topics, sources=len(self.sources))
        return self


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings from a YAML file.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.load(Settings, path, environment)


class _Connection(Section):
    kafka: Kafka


def parse_kafka(options: Mapping[str, Any], environment: Mapping[str, str], where: str) -> Kafka:
    """Return only the `kafka` section, built from settings on a command line.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.parse(_Connection, yaml.safe_dump({"kafka": dict(options)}), environment, where).kafka


def parse(text: str, environment: Mapping[str, str], where: str) -> Settings:
    """Return the settings from YAML text. `where` identifies the text in errors."""
    return config.parse(Settings, text, environment, where)
