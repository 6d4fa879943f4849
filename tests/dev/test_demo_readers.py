"""The readers that the demo compares with its shops."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from dev.demo.readers import own_columns_in_between, selected_by_readers

ROWS = pa.table({"id": [1, 2], "a": ["x", None], "_cdc_pos": ["1", "2"]})


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the catalog leaves its connection to the garbage collector
def test_readers_select_everything(tmp_path: Path) -> None:
    """Every reader returns all rows and columns in the table's order."""
    write_deltalake(tmp_path / "delta", ROWS)
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", ROWS.schema, str(tmp_path / "iceberg"))
    table.append(ROWS)
    metadata = Path(table.metadata_location.removeprefix("file://"))
    metadata.with_name("version-hint.text").write_text(metadata.name.removesuffix(".metadata.json"))
    found = [*selected_by_readers(tmp_path / "delta"), *selected_by_readers(tmp_path / "iceberg")]
    assert ["deltalake", "DuckDB", "pyiceberg"] == [reader for reader, _ in found]
    for _, rows in found:
        assert ROWS.to_pydict() == rows.to_pydict()
        assert ROWS.column_names == rows.column_names


def test_columns_after_those_of_the_sink() -> None:
    """They are reported, because the sink's columns come last."""
    assert [] == own_columns_in_between(["id", "a", "_cdc_scope", "_cdc_pos"])
    assert ["the column a is after the sink's columns"] == own_columns_in_between(["id", "_cdc_scope", "a", "_cdc_pos"])
