"""Trace the history of a table's structure: what changed from one schema to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from cdc_core.envelope import TableSchema


class SchemaStep(NamedTuple):
    """A schema of a table.

    Args:
        key: the schema's key in the schemas topic.
        since_ms: when it was published, in milliseconds since 1970.
        changes: what differs from the schema before it. Empty for the first one.
    """

    key: str
    since_ms: int
    schema: TableSchema
    changes: Sequence[str]


def timeline(schemas: Mapping[str, tuple[int, TableSchema]], of: TableSchema) -> list[SchemaStep]:
    """Return all schemas of the table that `of` describes, newest first. If the table returned to a schema, only the
    newest time is known, because the topic is compacted.

    Args:
        schemas: the time and schema by key.
    """
    found = [(since, key, schema) for key, (since, schema) in schemas.items() if _table(schema) == _table(of)]
    found.sort(key=lambda each: each[:2])
    steps = [SchemaStep(key, since, schema, ()) for since, key, schema in found[:1]]
    for (_, _, before), (since, key, after) in pairwise(found):
        steps.append(SchemaStep(key, since, after, list(_changes(before, after)) or ["only properties not shown here"]))
    return steps[::-1]


def _table(schema: TableSchema) -> tuple[str, str | None, str | None, str]:
    return schema.source, schema.db, schema.schema, schema.table


def _changes(before: TableSchema, after: TableSchema) -> Iterator[str]:
    old = {column.name: column for column in before.columns}
    new = {column.name: column for column in after.columns}
    for name, column in new.items():
        if name not in old:
            yield f"added {name} ({column.native or column.type})"
    for name in old:
        if name not in new:
            yield f"removed {name}"
    for name in (name for name in new if name in old):
        one, other = old[name], new[name]
        if (one.type, one.native) != (other.type, other.native):
            yield f"{name}: {one.native or one.type} became {other.native or other.type}"
        if one.nullable != other.nullable:
            yield f"{name}: {_nullable(one.nullable)} became {_nullable(other.nullable)}"
    if before.key_columns != after.key_columns:
        keys = (", ".join(schema.key_columns) or "none" for schema in (before, after))
        yield "key: {} became {}".format(*keys)


def _nullable(nullable: bool | None) -> str:
    return {True: "nullable", False: "not null", None: "nullable or not, unknown"}[nullable]
