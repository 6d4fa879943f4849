"""FileLayouts as they are written in the configuration, and the tables that can have them."""

from __future__ import annotations

import pytest

from cdc_core.table_id import TableId
from spark_sink.config.settings import TablesSettings
from spark_sink.errors import Refused
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.layout import FileLayout, Transform, check_layout, differences
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.table_properties import layout_from, layout_property

COLUMNS = {
    "id": "bigint",
    "c": "string",
    "n": "int",
    "d": "date",
    "t": "timestamp_ntz",
    "amount": "decimal(9,2)",
    "n_bucket": "int",
}
EVERYTHING = {
    "partition": ["day(t)", "bucket(16, id)", "n"],
    "sort": ["n desc", "c"],
    "format_version": 2,
    "write_mode": "copy-on-write",
    "file_megabytes": 64,
}


def _shape(mode: Mode = Mode.MIRROR, **columns: str) -> TableShape:
    made = tuple(TableColumn(name, sql) for name, sql in (columns or COLUMNS).items())
    return TableShape(TableId("s", "d", None, "t"), made, ("id",), mode)


def _configured(layout: dict[str, object]) -> FileLayout:
    return TablesSettings.model_validate({"warehouse": "/w", "layout": {"*": layout}}).rules.layouts["*"]


@pytest.mark.parametrize("layout", [EVERYTHING, {"cluster": ["c"], "features": ["change_data_feed"]}, {}])
def test_the_property_has_the_whole_layout(layout: dict[str, object]) -> None:
    """A layout is the same after it was stored as a table property."""
    made = _configured(layout)
    assert layout == made.settings()
    assert made == layout_from(layout_property(made))


def test_spellings_of_one_layout() -> None:
    """Spaces in a bucket, and the order of features, make no difference."""
    assert _configured({"partition": ["bucket(16,id)"]}) == _configured({"partition": ["bucket(16, id)"]})
    features = ["deletion_vectors", "change_data_feed", "deletion_vectors"]
    assert _configured({"features": features}) == _configured({"features": features[:2][::-1]})


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({"partition": ["week(t)"]}, "'week(t)' is not a partition; write a column, day(column), month(column) or"),
        ({"partition": ["bucket(1, id)"]}, "'bucket(1, id)' has 1 buckets, but the number must be 2 to 4096"),
        ({"partition": ["c", "c"]}, "partition names the column c twice"),
        ({"sort": ["c", "c desc"]}, "sort names the column c twice"),
        ({"partition": ["n"], "cluster": ["c"]}, "a Delta table is either partitioned or clustered"),
        (
            {"sort": ["c"], "features": ["column_mapping"]},
            "features, sort cannot be combined: cluster and features are for Delta tables",
        ),
        ({"format_version": 1}, "format_version"),
        ({"write_mode": "merge"}, "write_mode"),
        ({"features": ["uniform"]}, "features"),
        ({"partitions": ["c"]}, "partitions"),
    ],
)
def test_mistakes(layout: dict[str, object], said: str) -> None:
    """A layout that no table can have is an error at startup."""
    with pytest.raises(ValueError, match=r".*") as caught:
        _configured(layout)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("format", "layout", "said"),
    [
        (
            Format.DELTA,
            {"sort": ["c"]},
            "sort can only be set for iceberg tables, but this is a table with format delta",
        ),
        (
            Format.ICEBERG,
            {"partition": ["c"]},
            "c has the type string, but identity partitions of tables with format iceberg",
        ),
        (Format.ICEBERG, {"partition": ["bucket(4, n)"]}, "Iceberg would name the partition n_bucket"),
        (Format.ICEBERG, {"cluster": ["c"]}, "cluster can only be set for delta tables"),
        (Format.DELTA, {"partition": ["day(t)"]}, "tables with format delta have no day partitions, only identity"),
        (
            Format.DELTA,
            {"partition": ["c"]},
            "c has the type string, but identity partitions of tables with format delta",
        ),
        (Format.DELTA, {"partition": ["amount"]}, "amount has the type decimal(9,2)"),
        (Format.ICEBERG, {"partition": ["day(n)"]}, "n has the type int, but day partitions"),
        (Format.ICEBERG, {"partition": ["bucket(4, d)"]}, "d has the type date, but bucket partitions"),
        (
            Format.ICEBERG,
            {"partition": ["x"]},
            "the table has no column x; its columns are amount, c, d, id, n, n_bucket, t",
        ),
        (Format.ICEBERG, {"sort": ["x"]}, "the table has no column x"),
        (Format.DELTA, {"cluster": ["x"]}, "the table has no column x"),
        (Format.DELTA, {"cluster": ["amount"]}, "amount has the type decimal(9,2), for which the table has no"),
    ],
)
def test_tables_that_cannot_have_it(format: Format, layout: dict[str, object], said: str) -> None:
    with pytest.raises(Refused) as caught:
        check_layout(_configured(layout), _shape(), format)
    assert said in str(caught.value)


@pytest.mark.parametrize("mode", [Mode.HISTORY, Mode.CHANGELOG])
def test_features_that_deltalake_lacks(mode: Mode) -> None:
    """Only deltalake writes the histories and changelogs of Delta Lake."""
    check_layout(_configured({"features": ["change_data_feed"], "partition": ["n"]}), _shape(mode), Format.DELTA)
    with pytest.raises(Refused) as caught:
        check_layout(_configured({"features": ["deletion_vectors"], "cluster": ["c"]}), _shape(mode), Format.DELTA)
    assert f"deltalake writes tables with mode {mode}, and does not support deletion_vectors, cluster" in str(
        caught.value
    )


def test_all_reasons_are_listed() -> None:
    with pytest.raises(Refused) as caught:
        check_layout(_configured({"partition": ["day(t)", "x"]}), _shape(), Format.DELTA)
    assert 1 == str(caught.value).count("day partitions") == str(caught.value).count("no column x")


def test_a_delta_table_of_partition_columns_only() -> None:
    with pytest.raises(Refused) as caught:
        check_layout(_configured({"partition": ["id"]}), _shape(id="bigint"), Format.DELTA)
    assert "needs a column that is not a partition column" in str(caught.value)


def test_differences() -> None:
    before, after = _configured({"partition": ["n"], "file_megabytes": 8}), _configured({"partition": ["n", "d"]})
    assert [] == differences(before, before)
    assert ["partition: n, configured: n, d", "file_megabytes: 8, configured: not set"] == differences(before, after)


def test_a_column_named_like_a_transform() -> None:
    assert [Transform.IDENTITY] == [part.transform for part in _configured({"partition": ["day"]}).partition]
