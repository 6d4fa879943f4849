"""Compare a lakehouse table with the shop's table, cell by cell."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dev.demo.shop import Row, ShopTable

# Convert a lakehouse cell to a shop value. If the source does not declare a type fully (such as a decimal without a
# scale), the value is text in the lakehouse, and the text must represent the same value.
_READ: Mapping[str, Callable[[Any], Any]] = {
    "bigint": int,
    "int": int,
    "decimal": lambda cell: Decimal(str(cell)),
    "varchar": lambda cell: cell,
    "datetime": lambda cell: cell if isinstance(cell, datetime) else datetime.fromisoformat(cell),
    "date": lambda cell: cell if isinstance(cell, date) else date.fromisoformat(cell),
    "double": float,
    "blob": lambda cell: cell if isinstance(cell, bytes) else base64.b64decode(cell),
}


def differences(shape: ShopTable, expected: Iterable[Row], found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line, without values, for each row or cell that differs. The result is empty if the tables are
    equal.
    """
    wanted = {_key(shape, row): row for row in expected}
    lines = []
    seen = set()
    for row in found:
        key = tuple(_READ[_kind(shape, name)](row[name]) for name in shape.key)
        if key in seen:
            lines.append(f"{shape.name}: two rows with the key {key}")
        seen.add(key)
        if key not in wanted:
            lines.append(f"{shape.name}: unexpected row {key}")
            continue
        lines += [f"{shape.name}: {key}: {name} differs" for name in _differing(shape, wanted[key], row)]
    lines += [f"{shape.name}: no row {key}" for key in wanted.keys() - seen]
    return lines


def shop_row(shape: ShopTable, cells: Mapping[str, Any]) -> Row:
    """Return a row with the shop's types. The cells may be text, as they are in the lakehouse."""
    return {name: None if cell is None else _READ[_kind(shape, name)](cell) for name, cell in cells.items()}


def _differing(shape: ShopTable, wanted: Row, row: Mapping[str, Any]) -> list[str]:
    names = []
    for column in shape.columns:
        if column.name not in row:
            names.append(column.name)
            continue
        cell, value = row[column.name], wanted[column.name]
        equal = cell is None if value is None else cell is not None and _READ[column.kind](cell) == value
        if not equal:
            names.append(column.name)
    return names


def _key(shape: ShopTable, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in shape.key)


def _kind(shape: ShopTable, name: str) -> str:
    return next(column.kind for column in shape.columns if column.name == name)
