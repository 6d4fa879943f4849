"""The tables that an output gets."""

import pytest

from translator.config.table_filter import TableChoice, TableFilter


def any_of(*tables: str) -> list[TableChoice]:
    return [TableChoice(table=table) for table in tables]


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ((), (), {"shop.orders", "shop.items", "crm.orders", None}),
        (("shop.*",), (), {"shop.orders", "shop.items", None}),
        (("*.orders",), ("crm.*",), {"shop.orders", None}),
        ((), ("*.items",), {"shop.orders", "crm.orders", None}),
        (("SHOP.*", "shop.order?"), (), {"shop.orders", None}),
        ((), ("*",), set()),
        (("orders",), (), {None}),
    ],
)
def test_tables(include: tuple[str, ...], exclude: tuple[str, ...], taken: set[str | None]) -> None:
    """Patterns match the whole name. Events without a table follow their source."""
    chosen = TableFilter(any_of(*include), any_of(*exclude))
    found = {
        name
        for name in ("shop.orders", "shop.items", "crm.orders", None)
        for db, _, table in [(name or "").partition(".")]
        if chosen.takes("src", db or None, None, table or None)
    }
    assert taken == found


def test_sources() -> None:
    """A choice can be limited to one source, without tables of the same name in another."""
    chosen = TableFilter([TableChoice("erp*", "*")], [TableChoice("erp2", "dbo.*")])
    assert chosen.takes("erp1", None, "dbo", "t")
    assert not chosen.takes("erp2", None, "dbo", "t")
    assert chosen.takes("erp2", None, "hr", "t")
    assert not chosen.takes("shop", None, "hr", "t")
    assert chosen.takes("erp2", None, None, None)
    assert not chosen.takes("shop", None, None, None)


def test_brackets_are_no_pattern() -> None:
    assert TableFilter(any_of("a[b]")).takes("s", None, None, "a[b]")
    assert not TableFilter(any_of("a[b]")).takes("s", None, None, "ab")
