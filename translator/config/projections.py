"""The section `projections`: further topics, their form, and the tables that they get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from cdc_core.kafka_settings import Section
from translator.config.table_filter import TableChoice, TableFilter
from translator.config.topic_template import MAX_LENGTH, TopicTemplate, template_of

# Kafka has no topics named `.` and `..`.
_LEGAL = r"^\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*$"
TopicName = Annotated[str, Field(pattern=_LEGAL, max_length=MAX_LENGTH)]


class TableChoiceSettings(Section):
    """Tables by patterns with * and ?."""

    source: str = Field(default="*", min_length=1, description="Pattern over names of sources.")
    table: str = Field(
        default="*",
        min_length=1,
        description="Pattern over `db.schema.table`, without levels that the source does not have.",
    )

    def pattern(self) -> TableChoice:
        return TableChoice(self.source, self.table)


class Projection(Section):
    """A further topic that gets the same events in another form, for readers that do not know the envelope."""

    topic: str = Field(
        description="A topic, made as the canonical topic is; or a template that gives each table its own: a prefix, "
        "then `{source}.{table}`, `{table}` or `{source}`. Those are made when their first records come."
    )
    codec: str = Field(description="avro, json, debezium, debezium_avro or upsert.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the codec.")
    include: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="The tables that it gets; without it, all."
    )
    exclude: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables that it does not get, even where they are included."
    )

    partitions: int | None = Field(
        default=None, ge=1, description="Of each topic, when created; not set: `topics.partitions`."
    )
    config: dict[str, str] = Field(
        default_factory=dict, description="Settings of each topic, when created, such as `cleanup.policy`."
    )

    @field_validator("topic")
    @classmethod
    def _topic_has_a_legal_name(cls, topic: str) -> str:
        if template_of(topic) is None and not (re.match(_LEGAL, topic) and len(topic) <= MAX_LENGTH):
            raise ValueError(f"no name of a topic: letters, digits, points, - and _, at most {MAX_LENGTH}")
        return topic

    @model_validator(mode="after")
    def _rows_without_names_have_their_own_topic(self) -> Projection:
        """Rows of several tables have equal keys there, and compaction would delete rows that are there."""
        template = self.template
        if template is not None and not template.by_table and self.options.get("key") == "columns":
            raise ValueError(f"key: columns wants a topic for each table, and {self.topic} gives one to each source")
        return self

    @property
    def template(self) -> TopicTemplate | None:
        """The template of its topics; None where it has one topic."""
        return template_of(self.topic)

    @property
    def tables(self) -> TableFilter | None:
        """The choice of its tables; None where it gets all."""
        template = self.template
        return chosen(self.include, self.exclude, tables_only=template is not None and template.by_table)


def chosen(
    include: Sequence[TableChoiceSettings], exclude: Sequence[TableChoiceSettings], *, tables_only: bool = False
) -> TableFilter | None:
    """Return the choice of an output's tables; None where it gets all."""
    if not include and not exclude and not tables_only:
        return None
    patterns = [one.pattern() for one in include], [one.pattern() for one in exclude]
    return TableFilter(*patterns, tables_only=tables_only)


def check_templates(projections: Sequence[Projection], written: Sequence[str], *, sources: int) -> None:
    """Check that what begins with the prefix of a template is of that template alone.

    Args:
        written: the topics that are written beside those of templates.
        sources: how many there are.

    Raises:
        ValueError: it is not, or tables of several sources that are named alike would meet.
    """
    templates = [one.template for one in projections if one.template is not None]
    for at, template in enumerate(templates):
        prefixes = [one.prefix for number, one in enumerate(templates) if number != at]
        for other in (*written, *prefixes):
            if other.startswith(template.prefix):
                raise ValueError(
                    f"topics of {template.text} would stand among others: {other} begins with {template.prefix} too; "
                    f"give the template a prefix of its own"
                )
        if not template.by_source and sources > 1:
            raise ValueError(
                f"topics of {template.text} would hold tables of several sources that are named alike; "
                f"write {template.prefix}{{source}}.{{table}}"
            )
