"""The section `projections`: further topics, their form, and the tables that they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from cdc_core.kafka_settings import Section
from translator.table_filter import TableChoice, TableFilter

# Kafka has no topics named `.` and `..`.
TopicName = Annotated[str, Field(pattern=r"^\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*$", max_length=249)]


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

    topic: TopicName = Field(description="Created as the canonical topic is.")
    codec: str = Field(description="avro, json, debezium or upsert.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the codec.")
    include: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="The tables that it gets; without it, all."
    )
    exclude: tuple[TableChoiceSettings, ...] = Field(
        default=(), description="Tables that it does not get, even where they are included."
    )

    @property
    def tables(self) -> TableFilter | None:
        """The choice of its tables; None where it gets all."""
        return chosen(self.include, self.exclude)


def chosen(include: Sequence[TableChoiceSettings], exclude: Sequence[TableChoiceSettings]) -> TableFilter | None:
    """Return the choice of an output's tables; None where it gets all."""
    if not include and not exclude:
        return None
    return TableFilter([one.pattern() for one in include], [one.pattern() for one in exclude])
