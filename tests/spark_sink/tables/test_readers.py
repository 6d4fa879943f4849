"""Readers read tables with each layout, or fail, exactly as the reader rules say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from dev.environments import NotInstalledError
from dev.iceberg import duckdb_reader
from dev.pages.reader_table import LAYOUTS, PAGE, ReadLayout, page
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.reader_rules import READERS, RUN, Reader, ReaderFeature
from spark_sink.schema.table_spec import Format
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake

NAME = "shop_sales.orders"

Rows = list[tuple[int, str]]


def _of(read: pa.Table) -> Rows:
    return [(row["id"], row["a"]) for row in read.select(["id", "a"]).to_pylist()]


def _by_duckdb(lake: MergingLake) -> Rows:
    scan = f"delta_scan('{lake.path()}')"
    if lake.tables.format(NAME) is Format.ICEBERG:
        scan = f"iceberg_scan('{lake.iceberg().metadata_location}')"
    try:
        return [(row[0], row[1]) for row in duckdb_reader.answer(None, "", f"SELECT id, a FROM {scan}")]
    except NotInstalledError as error:
        pytest.skip(f"{error}; DuckDB is NOT SHOWN")


RUNS: Mapping[str, Callable[[MergingLake], Rows]] = {
    "spark": lambda lake: _of(lake.read().toArrow()),
    "deltalake": lambda lake: _of(
        pa.table(QueryBuilder().register("t", DeltaTable(lake.path())).execute("SELECT id, a FROM t"))
    ),
    "deltalake-pyarrow": lambda lake: _of(DeltaTable(lake.path()).to_pyarrow_table()),
    "pyiceberg": lambda lake: _of(lake.iceberg().scan().to_arrow()),
    "duckdb": _by_duckdb,
}


def test_every_reader_that_counts_as_run_is_run() -> None:
    assert RUNS.keys() == {name for name, rules in READERS.items() if {RUN} == {rule.evidence for rule in rules}}
    assert not [rule for name, rules in READERS.items() if name not in RUNS for rule in rules if rule.evidence == RUN]


@pytest.mark.parametrize("wanted", LAYOUTS, ids=lambda one: one.text)
def test_readers(merging_lake: MergingLake, wanted: ReadLayout) -> None:
    """Each reader that has rules for the format reads the rows, unless the rules say that it cannot."""
    lake = merging_lake
    lake.use(TableRules(formats={"*": wanted.format}, layouts={"*": FileLayout.of(wanted.layout)}))
    more = {} if wanted.text.endswith("none") else {"t": "timestamp"}
    lake.announce(schema_of({"id": "int64", "a": "string", **more}))
    lake.apply(0, [change("c", {"id": id}, {"a": "old"}, pos=1 + id) for id in range(40)])
    lake.apply(1, [change("d", {"id": 3}, pos=50), change("u", {"id": 4}, {"a": "new"}, pos=51, full=False)])
    assert {feature.value for feature in wanted.features} == lake.tables.reader_features(NAME)
    expected = [(id, "new" if id == 4 else "old") for id in range(40) if id != 3]
    tried = []
    for name, read in RUNS.items():
        obstacles = list(Reader(name).obstacles(wanted.features))
        if all(is_known for _, is_known, _ in obstacles):
            tried.append(name)
            assert (_outcome(read, lake), name) == (None if obstacles else expected, name)
    assert 3 <= len(tried)


def _outcome(read: Callable[[MergingLake], Rows], lake: MergingLake) -> Rows | None:
    """Return the rows, or None if the reader rejects the table."""
    try:
        return sorted(read(lake))
    except Exception:
        return None


def test_the_page_has_the_rules() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "run python -m dev.pages.reader_table"


@pytest.mark.parametrize(
    ("reader", "feature", "expected"),
    [
        ("trino@476", ReaderFeature.ICEBERG_DELETION_VECTORS, (True, "since 480, ")),
        ("trino@480", ReaderFeature.ICEBERG_DELETION_VECTORS, None),
        ("trino", ReaderFeature.ICEBERG_DELETION_VECTORS, None),
        ("trino@450", ReaderFeature.COLUMN_MAPPING, (False, "since 469, ")),
        ("athena", ReaderFeature.ICEBERG_3, (True, "https://docs.aws.amazon.com/")),
        ("duckdb@1.5.10", ReaderFeature.ICEBERG_3, None),
        ("duckdb@1.4", ReaderFeature.ICEBERG_3, (False, "since 1.5.5, run")),
        ("deltalake-pyarrow", ReaderFeature.DELETION_VECTORS, (True, "run")),
        ("snowflake", ReaderFeature.TIMESTAMP_NTZ, (False, "no rule")),
    ],
)
def test_versions(reader: str, feature: ReaderFeature, expected: tuple[bool, str] | None) -> None:
    """An earlier version is only known to fail if the documentation says so."""
    found = list(Reader.parse(reader).obstacles({feature.value}))
    assert (expected is None) == (not found)
    for _, is_known, why in found:
        assert expected is not None
        assert (expected[0], True) == (is_known, why.startswith(expected[1]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trino@new", "'trino@new' is not a reader; write a name, or name@version such as trino@476"),
        ("trini", "'trini' (did you mean trino?)"),
        ("athena@3", "athena has no versions; write athena"),
    ],
)
def test_readers_that_are_not_known(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Reader.parse(text)
    assert said in str(caught.value)


def test_features_of_tables(merging_lake: MergingLake, tmp_path: Path) -> None:
    """A table without special features only needs a reader for its format, and a missing table needs none."""
    lake = merging_lake
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    assert ({"Delta Lake"}, set()) == (lake.tables.reader_features(NAME), lake.tables.reader_features("no.table"))
    files: Any = DeltaTable(lake.path()).protocol()
    assert 1 == files.min_reader_version
