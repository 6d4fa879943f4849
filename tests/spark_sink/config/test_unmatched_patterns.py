"""A pattern that matches no announced table is reported at startup."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.table_id import TableId
from spark_sink.config.settings import TablesSettings
from spark_sink.config.unmatched_patterns import unmatched_patterns

ORDERS = TableId("shop", "sales", None, "orders")
KNOWN = [ORDERS, TableId("shop", "sales", None, "items")]

# A value for each section whose keys are names of tables or patterns.
BY_NAME = {
    "modes": "history",
    "keys": ["id"],
    "shared": [str(ORDERS)],
    "formats": "iceberg",
    "buckets": 4,
    "layout": {"partition": ["day"]},
    "engines": "spark",
}
NAMED = ["shop_sales.orders", "SHOP_sales.Orders", "shop_*"]
SOURCES = [str(ORDERS), "shop/*"]


def _tables(folder: Path, **sections: object) -> TablesSettings:
    return TablesSettings.model_validate({"warehouse": str(folder), **sections})


@pytest.mark.parametrize("section", BY_NAME)
def test_the_name_of_a_table_that_is_not_known(tmp_path: Path, section: str) -> None:
    tables = _tables(tmp_path, **{section: {"shop_sales.ordrs": BY_NAME[section]}})
    assert unmatched_patterns(tables, KNOWN) == [f"tables.{section}: shop_sales.ordrs"]


@pytest.mark.parametrize("section", BY_NAME)
@pytest.mark.parametrize("name", NAMED)
def test_names_and_patterns_of_known_tables(tmp_path: Path, section: str, name: str) -> None:
    assert unmatched_patterns(_tables(tmp_path, **{section: {name: BY_NAME[section]}}), KNOWN) == []


def test_patterns_of_source_tables(tmp_path: Path) -> None:
    tables = _tables(tmp_path, rename={"shop/*/ordrs": "ordered"}, exclude=["store/*"])
    assert unmatched_patterns(tables, KNOWN) == ["tables.rename: shop/*/ordrs", "tables.exclude: store/*"]


@pytest.mark.parametrize("pattern", SOURCES)
def test_patterns_of_known_source_tables(tmp_path: Path, pattern: str) -> None:
    tables = _tables(tmp_path, rename={pattern: "ordered"}, exclude=[pattern])
    # The rules by name apply to the new name.
    assert unmatched_patterns(tables, [ORDERS]) == []
    renamed = _tables(tmp_path, rename={pattern: "ordered"}, modes={"ordered": "history"})
    assert unmatched_patterns(renamed, [ORDERS]) == []


def test_a_source_that_shares_no_table(tmp_path: Path) -> None:
    tables = _tables(tmp_path, shared={"shop_sales.orders": ["SHOP/*", "store/*"]})
    assert unmatched_patterns(tables, KNOWN) == ["tables.shared: shop_sales.orders: store/*"]


def test_nothing_is_reported_before_a_table_is_known(tmp_path: Path) -> None:
    assert unmatched_patterns(_tables(tmp_path, exclude=["store/*"]), []) == []
