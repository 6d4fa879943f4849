"""The `projections` section: additional topics, their format, and their tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from cdc_core.kafka_settings import Section
from translator.config.table_filter import TableChoice, TableFilter
from translator.config.topic_template import MAX_LENGTH, TopicTemplate, template_of

# Kafka does not allow topics named `.` and `..`.
_LEGAL = r"^\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*$"
TopicName = Annotated[str, Field(pattern=_LEGAL, max_length=MAX_LENGTH)]


class TableChoiceSettings(Section):
    """Selects tables by patterns with * and ?."""

    source: str = Field(default="*", min_length=1, description="Pattern for source names.")
    table: str = Field(
        default="*",
        min_length=1,
        description="Pattern for `db.schema.table`. Leave out any level that the source does not have.",
    )

    def pattern(self) -> TableChoice:
        return TableChoice(self.source, self.table)


class Projection(Section):
    """Another topic with the same events in a different format, for consumers that do not support the envelope."""

    topic: str = Field(
        description=(
            "Name of a single topic, or a template for the names of several topics. A template is a prefix "
            "followed by `{source}.{table}`, `{table}` or `{source}`. Each of its topics is created when its first "
            "record arrives. A single topic is created just like the canonical topic."
        )
    )
    codec: str = Field(description="Format of the records: avro, json, debezium, debezium_avro or upsert.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the codec.")
    include: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables to include. By default, all tables are included."
    )
    exclude: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables to exclude. This setting takes precedence over `include`."
    )

    partitions: int | None = Field(
        default=None,
        ge=1,
        description="Number of partitions for each new topic. Defaults to `topics.partitions`.",
    )
    config: dict[str, str] = Field(
        default_factory=dict, description="Topic settings for each new topic, such as `cleanup.policy`."
    )

    @field_validator("topic")
    @classmethod
    def _topic_has_a_legal_name(cls, topic: str) -> str:
        if template_of(topic) is None and not (re.match(_LEGAL, topic) and len(topic) <= MAX_LENGTH):
            raise ValueError(f"not a valid topic name: use at most {MAX_LENGTH} letters, digits, points, - and _")
        return topic

    @model_validator(mode="after")
    def _rows_without_names_have_their_own_topic(self) -> Projection:
        """Reject `key: columns` if rows of several tables would share keys. Compaction would then delete live rows."""
        template = self.template
        if template is not None and not template.by_table and self.options.get("key") == "columns":
            raise ValueError(
                f"key: columns requires one topic per table, but the template {self.topic} gives one topic per source"
            )
        return self

    @property
    def template(self) -> TopicTemplate | None:
        """The projection's topic template, or None for a single topic."""
        return template_of(self.topic)

    @property
    def tables(self) -> TableFilter | None:
        """The selected tables, or None for all tables."""
        template = self.template
        return chosen(self.include, self.exclude, tables_only=template is not None and template.by_table)


def chosen(
    include: Sequence[TableChoiceSettings], exclude: Sequence[TableChoiceSettings], *, tables_only: bool = False
) -> TableFilter | None:
    """Return an output's table selection, or None for all tables."""
    if not include and not exclude and not tables_only:
        return None
    patterns = [one.pattern() for one in include], [one.pattern() for one in exclude]
    return TableFilter(*patterns, tables_only=tables_only)


def check_templates(projections: Sequence[Projection], written: Sequence[str], *, sources: int) -> None:
    """Check that no other topic begins with the prefix of a template.

    Args:
        written: the topics that are written in addition to those from templates.
        sources: the number of sources.

    Raises:
        ValueError: a prefix is not unique, or several sources have tables with the same name that would share a topic.
    """
    templates = [one.template for one in projections if one.template is not None]
    for at, template in enumerate(templates):
        prefixes = [one.prefix for number, one in enumerate(templates) if number != at]
        for other in (*written, *prefixes):
            if other.startswith(template.prefix):
                raise ValueError(
                    f"topics from the template {template.text} cannot be told apart from others, because {other} "
                    f"also begins with {template.prefix}; choose a prefix that no other topic begins with"
                )
        if not template.by_source and sources > 1:
            raise ValueError(
                f"topics from the template {template.text} would mix tables of different sources that have the same "
                f"name; use {template.prefix}{{source}}.{{table}}"
            )
