"""The whole configuration as types; how the file is read is cdc_core.config.

A name that is not known is an error at start, with the nearest known one. The options of a dialect are checked by the
dialect, those of a codec by the codec.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import AwareDatetime, Field, PrivateAttr, ValidationInfo, model_validator

from cdc_core import config
from cdc_core.config_mistakes import SettingsFile
from cdc_core.kafka_settings import Kafka as Kafka
from cdc_core.kafka_settings import Section
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
    """The creation of the topics that the translator writes."""

    create: bool = Field(default=True, description="false: topics that are missing stop the start.")
    partitions: int = Field(
        default=4, ge=1, description="Of the topics of events and of the dead-letter topic, when created."
    )
    replication_factor: int | None = Field(
        default=None, ge=1, description="Copies of each topic, when created; not set: as many as the brokers make."
    )


class Output(Section):
    """The canonical topic and its form. The other topics are named after the canonical one."""

    topic: TopicName = Field(default="cdc.canonical", description="The canonical topic.")
    codec: Literal["avro", "json"] = Field(default="avro", description="The form of events: docs/envelope.md.")
    include: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="The tables of the canonical topic; without it, all."
    )
    exclude: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables that the canonical topic does not get, even where they are included."
    )

    @property
    def schemas_topic(self) -> str:
        """Compacted: table schemas."""
        return f"{self.topic}.schemas"

    @property
    def metadata_topic(self) -> str:
        """Compacted: learned source metadata."""
        return f"{self.topic}.metadata"

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}.dlq"


class TableSettings(Section):
    """A declared table, see message.DeclaredTable."""

    table: str = Field(description="Pattern over the table's name as the source writes it, with * and ?.")
    key: tuple[str, ...] = Field(default=(), description="Its key columns, in key order.")
    columns: dict[str, str] | None = Field(
        default=None,
        description="Canonical type by column, all of them and in table order; without it only the key is declared.",
    )

    def declared(self) -> DeclaredTable:
        return DeclaredTable(self.table, self.key, self.columns)


class Source(Section):
    """One replication task and the raw topics that it writes."""

    name: Name = Field(description="Stands in every event; never change it.")
    dialect: str = Field(description="qlik, dts_avro, shareplex or canal.")
    topics: tuple[TopicPattern, ...] = Field(
        min_length=1, description="Names, or patterns with * and ?, which also match topics that come later."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the dialect.")
    tables: tuple[TableSettings, ...] = ()
    metadata_topics: tuple[TopicPattern, ...] = Field(
        default=(),
        description="Those of the topics that carry metadata messages; read to their end before data flows.",
    )
    start: Start | None = Field(default=None, description="Instead of the global `start`.")
    order: Literal["arrival", "native"] = Field(
        default="arrival",
        description="What orders the changes of a row: their place in the raw partition, or the source's own sequence.",
    )
    epochs: tuple[AwareDatetime, ...] = Field(
        default=(),
        max_length=9_999,
        description="order: native: times after which sequences are not comparable with those before, such as reloads.",
    )
    task: str | None = Field(
        default=None, min_length=1, description="order: native: the task, for messages that do not name theirs."
    )

    @model_validator(mode="after")
    def _metadata_topics_are_topics(self) -> Source:
        for topic in self.metadata_topics:
            if not is_pattern(topic) and not any(matches(topic, entry) for entry in self.topics):
                raise ValueError(f"metadata topic {topic} is not among topics")
        return self

    @model_validator(mode="after")
    def _native_order_is_whole(self) -> Source:
        if self.order != "native" and (self.epochs or self.task):
            raise ValueError("epochs and task are for order: native")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError("epochs must rise")
        return self


class Web(Section):
    """Probes and metrics: /livez, /readyz, /metrics."""

    host: str = Field(default="127.0.0.1", description="Where it listens; 0.0.0.0 in a container.")
    port: int = Field(default=8080, ge=1, le=65535, description="Of all three.")


class MetricsSettings(Section):
    """The metrics beyond the account."""

    tables: int = Field(
        default=100, ge=0, le=10_000, description="Tables with series of their own; the others are `other` together."
    )
    otlp: Otlp | None = Field(default=None, description="Not set: nothing is reported; Prometheus asks at /metrics.")


class Timing(Section):
    """Times in seconds. They must hold: delivery < rebalance < the grace period of the pod."""

    session: float = Field(
        default=30, gt=0, description="After so long without a heartbeat the group gives partitions to others."
    )
    rebalance: float = Field(
        default=60, gt=0, description="How long partitions may take to be drained before they are given away."
    )
    delivery: float = Field(
        default=40, gt=0, description="How long a record may take to be delivered; then exit code 1."
    )
    commit_interval: float = Field(default=1, gt=0, description="Between two commits of offsets.")
    stuck: float = Field(
        default=60,
        gt=0,
        description="How long the event loop may stand; delivery and rebalance, beyond their own times.",
    )
    metadata_wait: float = Field(
        default=10, ge=0, description="How long a message waits for metadata that has not come."
    )
    topic_refresh: float = Field(
        default=60,
        gt=0,
        description="How often topics are looked at: whether one was made again, or a new one matches a pattern.",
    )
    broker_wait: float = Field(
        default=120, ge=0, description="How long the start waits for brokers that do not answer; for the registry, too."
    )
    summary: float = Field(
        default=60, ge=0, description="Between two lines of the log that sum the work up; 0: there are none."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Timing:
        if self.delivery >= self.rebalance:
            raise ValueError("timing.delivery must be below rebalance, or a drain cannot end in time")
        return self


class Bounds(Section):
    """The bounds of what may be under way in a process at once; beyond it, reading pauses."""

    batches: int = Field(default=64, ge=1, description="Batches that are translated and not yet delivered.")
    events: int = Field(
        default=100_000, ge=1, description="Records handed to the producer and not yet delivered, of all outputs."
    )
    bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1024,
        description="Raw records that wait for their turn, and once more, records that wait for delivery.",
    )


class InputLimits(Section):
    """Bounds for all input, see message.Limits."""

    value_bytes: int = Field(default=Limits().value_bytes, ge=1, description="Bytes of a raw value.")
    json_depth: int = Field(default=Limits().json_depth, ge=1, le=500, description="Nesting of JSON.")
    columns: int = Field(default=Limits().columns, ge=1, description="Columns of a row.")
    rows: int = Field(
        default=Limits().rows, ge=1, le=999_999, description="Rows of a message; `pos` has six digits for them."
    )
    schema_text_bytes: int = Field(default=Limits().schema_text_bytes, ge=1, description="Text of an Avro schema.")
    schema_depth: int = Field(default=Limits().schema_depth, ge=1, le=64, description="Nesting of an Avro schema.")
    issue_raw_chars: int = Field(
        default=Limits().issue_raw_chars, ge=0, description="Characters of `issues[].raw`; longer ones are cut."
    )

    def limits(self) -> Limits:
        return Limits(**self.model_dump())


class Settings(Section):
    """`translator run -c FILE`."""

    group: Name = Field(default="cdc-translator", description="Consumer group; also the name of the Faust app.")
    group_instance_id: Name | None = Field(
        default=None,
        description="Static membership: a name of this process alone, and the same after a restart (of a StatefulSet's "
        "pod, as ${POD_NAME}). A restart within timing.session then moves no partitions.",
    )
    kafka: Kafka
    topics: TopicsSettings = TopicsSettings()
    output: Output = Output()
    projections: tuple[Projection, ...] = ()
    sources: tuple[Source, ...] = Field(min_length=1)
    start: Start = Field(
        default="earliest",
        description="Where partitions without a committed offset begin: earliest, latest, or a time (ISO 8601).",
    )
    registry: Registry | None = None
    delivery: Literal["at_least_once", "exactly_once"] = Field(
        default="at_least_once",
        description="exactly_once: in transactions; readers of committed records see every event once.",
    )
    on_error: dict[ErrorCode, Literal["dead_letter", "hold_table", "stop"]] = Field(
        default_factory=dict,
        description="By code, what a message does that cannot be translated. Default: it becomes a dead letter. "
        "hold_table: later messages of its table follow it, until they are replayed in order. CONTRADICTION, a message "
        "that contradicts the options of its source, stops by default, or holds its whole partition (hold_table).",
    )
    masks: MasksSettings = MasksSettings()
    native: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: common messages take the native path where it was built, to the same bytes. The environment "
        "variable CDC_NATIVE=off turns it off, too.",
    )
    web: Web = Web()
    metrics: MetricsSettings = MetricsSettings()
    timing: Timing = Timing()
    bounds: Bounds = Bounds()
    limits: InputLimits = InputLimits()
    log_format: Literal["json", "console", "auto"] = Field(
        default="auto", description="auto: console on a terminal, else json."
    )
    log_level: Literal["info", "warning", "error"] = Field(
        default="info", description="Lines below it are not written; the last line before an end by an error always is."
    )

    @property
    def raw_topics(self) -> list[str]:
        """The entries of `topics`, of all sources: names and patterns."""
        return [topic for source in self.sources for topic in source.topics]

    @property
    def event_topics(self) -> list[str]:
        """The topics that get events: the canonical one, then those of projections that have one."""
        return [self.output.topic, *(one.topic for one in self.projections if one.template is None)]

    @property
    def templates(self) -> list[TopicTemplate]:
        """The templates of the topics of projections that have several."""
        return [one.template for one in self.projections if one.template is not None]

    @property
    def written_topics(self) -> list[str]:
        """Every topic that is written, but for those of templates."""
        output = self.output
        return [*self.event_topics, output.dead_letter_topic, output.schemas_topic, output.metadata_topic]

    def writes(self, topic: str) -> bool:
        """Return whether a topic is one that is written; those of templates are, there or not."""
        return topic in self.written_topics or any(topic.startswith(one.prefix) for one in self.templates)

    @property
    def masked_sources(self) -> frozenset[str]:
        """The sources with masks whose messages may not be written or shown as they came."""
        if self.masks.messages == "keep":
            return frozenset()
        return frozenset(source.name for source in self.sources if self.masks.rules_of(source.name))

    @property
    def digest(self) -> str:
        """Tells this configuration from another; secrets are not in it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def codes(self, policy: str) -> frozenset[ErrorCode]:
        """The codes with this policy."""
        return frozenset(code for code, chosen in self.on_error.items() if chosen == policy)

    _file: SettingsFile | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _comes_from_a_file(self, info: ValidationInfo) -> Settings:
        if info.context is not None:
            self._file = info.context.get(config.FILE)
        return self

    def refuse(self, wrong: Sequence[tuple[tuple[int | str, ...], ConfigError]]) -> None:
        """Raise an error for all that is wrong, each with its location in the file; nothing where nothing is."""
        if not wrong:
            return
        if self._file is not None:
            raise self._file.refusal(wrong)
        raise ConfigError("; ".join(str(error) for _, error in wrong))

    @model_validator(mode="after")
    def _held_is_no_error(self) -> Settings:
        if ErrorCode.HELD in self.on_error:
            raise ValueError("on_error: HELD has no policy of its own: it is what hold_table makes of later messages")
        if self.on_error.get(ErrorCode.CONTRADICTION) == "dead_letter":
            raise ValueError(
                "on_error: CONTRADICTION stops (stop, the default) or holds its partition (hold_table); a dead letter "
                "alone would let later messages be read wrong"
            )
        return self

    @model_validator(mode="after")
    def _masks_have_sources(self) -> Settings:
        for rule in self.masks.rules:
            if not any(rule.rule().matches_source(source.name) for source in self.sources):
                raise ValueError(f"masks: a rule is for source {rule.source}, and none is named so")
        return self

    @model_validator(mode="after")
    def _unambiguous(self) -> Settings:
        names = [source.name for source in self.sources]
        for what, values in (("source name", names), ("output topic", self.written_topics)):
            for value in values:
                if values.count(value) > 1:
                    raise ValueError(f"{what} {value} is used twice")
        for topic in self.raw_topics:
            owners = [source.name for source in self.sources for entry in source.topics if entry == topic]
            if len(set(owners)) > 1:
                both = " and ".join(dict.fromkeys(owners))
                raise ValueError(f"topic {topic} is claimed by more than one source: {both}")
            if len(owners) > 1:
                raise ValueError(f"topic {topic} is named twice by source {owners[0]}")
        for topic in self.raw_topics:
            if self.writes(topic):
                raise ValueError(f"topic {topic} is both read and written")
        return self

    @model_validator(mode="after")
    def _templates_are_apart(self) -> Settings:
        check_templates(self.projections, self.written_topics, sources=len(self.sources))
        return self


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a YAML file.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.load(Settings, path, environment)


class _Connection(Section):
    kafka: Kafka


def parse_kafka(options: Mapping[str, Any], environment: Mapping[str, str], where: str) -> Kafka:
    """The section `kafka` alone, of which a command line gives the settings.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.parse(_Connection, yaml.safe_dump({"kafka": dict(options)}), environment, where).kafka


def parse(text: str, environment: Mapping[str, str], where: str) -> Settings:
    """The settings of a YAML text; `where` names it in errors."""
    return config.parse(Settings, text, environment, where)
