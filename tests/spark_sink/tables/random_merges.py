"""Random orders to merge rows, for tests that compare a merge without Spark with Spark's MERGE."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from spark_sink.tables.changes import Marker
from spark_sink.tables.spark_operations import GONE, WRITTEN, Merge
from spark_sink.tables.staging import Staging

KEY = ("k", "at")
KEYS = [
    (text, datetime(2026, 1, day, tzinfo=UTC))
    for text in ("", "a", "A ", "\U0010ffff", "b" * 300)
    for day in range(1, 9)
]

MakeRows = Callable[[Sequence[tuple[str, datetime]]], pa.Table]


def random_rows(
    rng: random.Random,
    keys: Sequence[tuple[str, datetime]],
    values: Mapping[str, Sequence[Any]],
    schema: pa.Schema,
) -> pa.Table:
    """Return a row for each key. The other columns have random ones of their values."""
    made = [
        dict(zip(KEY, key, strict=True)) | {name: rng.choice(some) for name, some in values.items()} for key in keys
    ]
    return pa.Table.from_pylist(made, schema)


def random_merge(
    rng: random.Random,
    staging: Staging,
    number: int,
    rows_of: MakeRows,
    types: Mapping[str, str],
    may_keep: Sequence[str],
) -> Merge:
    """Stage rows for random keys. Some keep stored values, and some are deleted.

    Args:
        rows_of: makes rows for these keys.
        types: the staged columns, by Spark's type, with the time of the last change.
        may_keep: columns in which rows can keep stored values.
    """
    columns = [name for name in types if name != "_cdc_updated_at"]
    keys = rng.sample(KEYS, rng.randint(1, 20))
    rows = rows_of(keys).select(columns)
    kept = [name for name in may_keep if rng.random() < 0.7]
    for name in kept:
        rows = rows.append_column(WRITTEN + name, pa.array([rng.random() < 0.5 for _ in keys]))
    deletes = rng.random() < 0.8
    if deletes:
        rows = rows.append_column(GONE, pa.array([rng.random() < 0.3 for _ in keys]))
    texts = [key[0] for key in keys]
    return Merge(
        path=staging.put("s.t", rows),
        columns={name: types[name] for name in columns},
        kept=tuple(kept),
        key=KEY,
        bounds={"k": (min(texts), max(texts))},
        values={"k": tuple(sorted(set(texts)))},
        inserts_only=False,
        version=0,
        marker=Marker("app", number),
        at=None if number == 2 else 1_770_000_000_000_000 + number,
        deletes=deletes,
        others=(Marker("other", number),),
    )
