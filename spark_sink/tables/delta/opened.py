"""What the tables of all modes have in common in deltalake, and what its commits and conditions are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltalake import CommitProperties, DeltaTable, Transaction

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.protocols import Marker
from spark_sink.tables.spark_operations import Order


class DeltaOpened:
    """A table of ours that was opened."""

    orders: Sequence[Order] = ()

    def __init__(self, table: DeltaTable, shape: TableShape, choice: Choice) -> None:
        self._table = table
        self.shape = shape
        self.choice = choice

    @property
    def version(self) -> int:
        return self._table.version()

    def applied(self, app: str) -> int | None:
        return self._table.transaction_version(app)


def commit(*markers: Marker, told: Mapping[str, str] | None = None) -> CommitProperties:
    """Properties of a commit; what is `told` stands in the table's log."""
    stated = dict(told) if told is not None else None
    return CommitProperties(custom_metadata=stated, app_transactions=[Transaction(*marker) for marker in markers])


def literal(text: str) -> str:
    """A text in deltalake's SQL; Spark's quotes otherwise."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
