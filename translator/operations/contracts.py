"""Read contracts for the tables in the schemas topic, and find the schemas that break them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from cdc_core.envelope import TableSchema
from cdc_core.errors import quote
from cdc_core.table_contract import TableContract, breaches, contract_id, document
from cdc_core.table_id import TableId, joined_name
from translator.config.settings import Settings
from translator.errors import ConfigError

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 200
"""Maximum length of a file name without its extension and hash. A key of a Kubernetes ConfigMap can have at most 253.
"""


class Breach(Struct, frozen=True):
    """A way in which a table breaks its contract. `table` is `source/db/schema/table`, as in contracts."""

    table: str
    breach: str


class ContractCheck(Struct, frozen=True):
    """The result of `translator contract check`."""

    compatible: bool
    breaches: list[Breach]


def newest_schemas(schemas: Iterable[TableSchema], pattern: str = "*") -> dict[TableId, TableSchema]:
    """Return the newest schema of each table whose `db.schema.table` matches the pattern, sorted by table.

    Args:
        schemas: all schemas, in the order in which they were announced.
    """
    newest = {TableId.of(schema): schema for schema in schemas}
    found = [table for table in newest if fnmatchcase(joined_name(table.db, table.schema, table.table), pattern)]
    return {table: newest[table] for table in sorted(found, key=contract_id)}


def contract_of(schema: TableSchema, settings: Settings) -> str:
    """Return a contract that the table meets today, as YAML."""
    return document(schema, _masks(schema, settings))


def _masks(schema: TableSchema, settings: Settings) -> Mapping[str, str]:
    """Return the action of each masked column's mask. The schemas topic contains the types after masking, so a rule for
    the original type may not be found.
    """
    name = joined_name(schema.db, schema.schema, schema.table)
    rules = [rule for rule in settings.masks.rules_of(schema.source) if rule.matches_table(name)]
    found = {}
    for column in schema.columns:
        for rule in rules:
            if rule.matches_column(column.name) and rule.matches_type(column.type):
                if rule.masks:
                    found[column.name] = rule.action
                break
    return found


def file_name(table: TableId) -> str:
    """Return the file name for a table's contract, which is also a valid key in a Kubernetes ConfigMap."""
    name = ".".join(_UNSAFE.sub("_", part or "") for part in table)
    if name == ".".join(part or "" for part in table) and len(name) <= _LONGEST:
        return f"{name}.yaml"
    return f"{name[:_LONGEST]}-{hashlib.sha256(contract_id(table).encode()).hexdigest()[:8]}.yaml"


def write(contracts: Mapping[TableId, str], folder: Path) -> Iterator[Path]:
    """Write the contracts to a folder, and yield each file that was written.

    Raises:
        ConfigError: the folder cannot be written, or one of the files already exists with other content. No file is
            written in that case.
    """
    files = {folder / file_name(table): text for table, text in contracts.items()}
    try:
        edited = [file for file, text in files.items() if file.exists() and file.read_text(encoding="utf-8") != text]
        if edited:
            raise ConfigError(
                f"{edited[0]} already exists with other content ({len(edited)} such files); move or delete the files "
                "to export these tables again"
            )
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
            yield file
    except OSError as error:
        raise ConfigError(f"cannot write the contracts to {folder}: {error.strerror}") from None


def breaches_by_schema(contract: TableContract, schema: TableSchema | None) -> list[Breach]:
    """Return how the newest schema of a table breaks the contract, or None if the table has no schema."""
    if schema is None:
        sentences = ["the schemas topic has no schema for the table"]
    else:
        sentences = breaches(contract, schema.column_types, schema.key_columns)
        sentences += can_be_null(contract, [column.name for column in schema.columns if column.nullable])
    return [Breach(contract_id(contract.table), sentence) for sentence in sentences]


def can_be_null(contract: TableContract, nullable: Container[str]) -> list[str]:
    """Return one sentence for each required column that the source allows to be NULL."""
    return [f"the column {quote(name)} can be NULL" for name in contract.required if name in nullable]
