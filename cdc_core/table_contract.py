"""Read contracts for tables, which are documents of the Open Data Contract Standard (ODCS), and find out how a schema
breaks them.

A contract belongs to one source table. Its schema object has the custom properties `sourceTable`
(`source/db/schema/table`, with `/` and `%` in names percent-encoded) and `additionalColumns` (false if other columns
are not allowed). A property has the custom property `canonicalType`. Without it, only the logical type is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import yaml
from msgspec import Struct

from cdc_core.envelope import Column, TableSchema
from cdc_core.errors import ConfigError, quote
from cdc_core.table_id import TableId, joined_name

API_VERSION = "v3.1.0"
"""The release of ODCS in which contracts are written."""

_MAJOR = "v3."
_NAMES = ("*.yaml", "*.yml")


class ContractColumn(Struct, frozen=True):
    """A column that readers rely on. `key` is its position in the key, from 1."""

    name: str
    type: str | None = None
    """The canonical type, if the contract has one."""
    logical: str | None = None
    """The logical type of ODCS, which several canonical types share."""
    native: str | None = None
    required: bool = False
    """True if the column is never NULL."""
    key: int | None = None
    masked: bool = False
    """True if events contain other values than the source."""


class TableContract(Struct, frozen=True, dict=True):
    """The columns that readers of one source table rely on.

    Args:
        closed: whether the table must not have other columns.
    """

    table: TableId
    columns: tuple[ContractColumn, ...]
    closed: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, ContractColumn]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The columns that are never NULL."""
        return tuple(column.name for column in self.columns if column.required)

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns, in key order. Empty if the contract has no key."""
        return tuple(name for _, name in sorted((column.key, column.name) for column in self.columns if column.key))


# -- documents


def document(schema: TableSchema, masks: Mapping[str, str] | None = None) -> str:
    """Return the contract that a table's schema fulfills, as YAML. The same schema always gives the same text.

    Args:
        masks: the action of the mask for each masked column.
    """
    table = contract_id(TableId.of(schema))
    content = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": table,
        "name": joined_name(schema.db, schema.schema, schema.table),
        "version": "1.0.0",
        "status": "active",
        "schema": [
            {
                "name": schema.table,
                "physicalName": joined_name(schema.db, schema.schema, schema.table),
                "logicalType": "object",
                "physicalType": "table",
                "properties": [_property(column, (masks or {}).get(column.name)) for column in schema.columns],
                "customProperties": _custom(sourceTable=table, additionalColumns=True),
            }
        ],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def contract_id(table: TableId) -> str:
    """Return a source table's name as contracts write it: source/db/schema/table, with absent levels left empty."""
    return "/".join((part or "").replace("%", "%25").replace("/", "%2F") for part in table)


def _property(column: Column, mask: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "logicalType": logical_type(column.type)}
    if column.native is not None:
        found["physicalType"] = column.native
    if column.nullable is not None:
        found["required"] = not column.nullable
    if column.key is not None:
        found |= {"primaryKey": True, "primaryKeyPosition": column.key}
    custom = {"canonicalType": column.type} | ({} if mask is None else {"mask": mask})
    return {**found, "customProperties": _custom(**custom)}


def _custom(**values: object) -> list[dict[str, object]]:
    return [{"property": name, "value": value} for name, value in values.items()]


class _Custom(Struct, frozen=True):
    property: str
    value: Any = None


class _Property(Struct, frozen=True, rename="camel"):
    name: str
    logical_type: str | None = None
    physical_type: str | None = None
    required: bool = False
    primary_key: bool = False
    primary_key_position: int = 1
    custom_properties: tuple[_Custom, ...] = ()


class _Object(Struct, frozen=True, rename="camel"):
    name: str
    properties: tuple[_Property, ...]
    custom_properties: tuple[_Custom, ...] = ()


class _Document(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    schema: tuple[_Object, ...]


def read(*paths: Path) -> dict[TableId, TableContract]:
    """Return the contracts in files and in folders, by source table. In a folder, the YAML files are read, but no
    subfolders.

    Raises:
        ConfigError: a path does not exist, a file is not such a contract, or two contracts are for the same table.
    """
    found: dict[TableId, TableContract] = {}
    for path in paths:
        known = len(found)
        for file in _files(path):
            for contract in _contracts(file):
                if contract.table in found:
                    raise ConfigError(f"{file}: another contract for the table {contract.table} was already read")
                found[contract.table] = contract
        if len(found) == known:
            raise ConfigError(f"{path}: the folder contains no contracts (*.yaml, *.yml)")
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    # Kubernetes keeps a mounted ConfigMap's versions in hidden folders.
    return sorted(file for name in _NAMES for file in path.glob(name) if not file.name.startswith("."))


def _contracts(file: Path) -> Iterator[TableContract]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the contract {file}: {type(error).__name__}") from None
    try:
        content = msgspec.convert(yaml.safe_load(text), _Document)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: the file is not an ODCS contract with a schema: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"{file}: the contract is not valid YAML") from None
    if content.kind != "DataContract" or not content.api_version.startswith(_MAJOR):
        raise ConfigError(f"{file}: expected kind DataContract and an apiVersion that starts with {_MAJOR}")
    for found in content.schema:
        yield _contract(file, found)


def _contract(file: Path, found: _Object) -> TableContract:
    custom = {one.property: one.value for one in found.custom_properties}
    parts = [unquote(part) for part in str(custom.get("sourceTable", "")).split("/")]
    if len(parts) != 4 or not parts[0] or not parts[3]:
        raise ConfigError(
            f"{file}: the schema object {quote(found.name)} needs the custom property sourceTable with the value "
            "source/db/schema/table; leave a level empty if the source does not have it"
        )
    source, db, schema, table = parts
    columns = tuple(map(_column, found.properties))
    if len({column.name for column in columns}) < len(columns):
        raise ConfigError(f"{file}: the schema object {quote(found.name)} lists a column twice")
    closed = custom.get("additionalColumns") is False
    return TableContract(TableId(source, db or None, schema or None, table), columns, closed)


def _column(found: _Property) -> ContractColumn:
    custom = {one.property: one.value for one in found.custom_properties}
    type_ = custom.get("canonicalType")
    key = found.primary_key_position if found.primary_key else None
    parts = (found.name, None if type_ is None else str(type_), found.logical_type, found.physical_type)
    return ContractColumn(*parts, found.required, key, "mask" in custom)


# -- comparison


def breaches(
    contract: TableContract, types: Mapping[str, str | None], key: Sequence[str], *, older: bool = False
) -> list[str]:
    """Return one sentence for each way in which a table breaks the contract.

    Args:
        types: the canonical type of each column, or None if the type need not be compared.
        key: the table's key columns. Their order does not matter.
        older: whether the table has newer columns. A column that was added to the contract later may then be missing,
            unless it is required.
    """
    found = []
    for wanted in contract.columns:
        if wanted.name not in types:
            if wanted.required or not older:
                found.append(f"the column {quote(wanted.name)} is missing")
            continue
        type_ = types[wanted.name]
        if type_ is not None and not accepts(wanted, type_):
            expected = wanted.type or wanted.logical
            found.append(f"the column {quote(wanted.name)} has the type {type_}, but the contract has {expected}")
    if contract.closed:
        names = [name for name in types if name not in contract.by_name]
        found += [f"the contract does not allow the additional column {quote(name)}" for name in names]
    if contract.key and set(key) != set(contract.key):
        found.append(f"the key is ({', '.join(key)}), but the contract has ({', '.join(contract.key)})")
    return found


def accepts(wanted: ContractColumn, canonical: str) -> bool:
    """Return whether readers that expect the contract's column can read all values of a canonical type."""
    if wanted.type is not None:
        return canonical == wanted.type or _fits(canonical, wanted.type)
    return wanted.logical is None or logical_type(canonical) == wanted.logical


_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGER = re.compile(r"(u?)int(8|16|32|64)")

# The number of digits in the greatest value, which decides whether a decimal column can store an integer.
_DIGITS: Mapping[str, int] = {"8": 3, "16": 5, "32": 10, "64": 19}


def _fits(canonical: str, wanted: str) -> bool:
    """Return whether a numeric type contains every value of another one."""
    ours, theirs = _DECIMAL.fullmatch(canonical), _DECIMAL.fullmatch(wanted)
    integer, wide = _INTEGER.fullmatch(canonical), _INTEGER.fullmatch(wanted)
    if integer and wide:
        signs_fit = integer[1] == wide[1] or not wide[1]
        return signs_fit and int(integer[2]) < int(wide[2])
    if theirs:
        scale, whole = int(theirs[2]), int(theirs[1]) - int(theirs[2])
        if integer:
            return whole >= _DIGITS[integer[2]] + (integer.group() == "uint64")
        return ours is not None and int(ours[2]) <= scale and int(ours[1]) - int(ours[2]) <= whole
    return canonical == "float32" and wanted == "float64"


_LOGICAL: Mapping[str, str] = {
    "boolean": "boolean",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamp",
    "float32": "number",
    "float64": "number",
}


def logical_type(canonical: str) -> str:
    """Return the logical type of ODCS for a canonical type. Values without a logical type of their own are strings."""
    if _INTEGER.fullmatch(canonical):
        return "integer"
    return "number" if canonical.startswith("decimal") else _LOGICAL.get(canonical, "string")
