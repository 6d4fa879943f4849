"""Run ClickHouse's Python engine (chdb) with the statements from docs/consumers.md, on files of records."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dev.demo.shop import ORDERS, ShopTable
from dev.environments import NotInstalledError, environment
from dev.interop.results import SECONDS, Found, ReaderError, Rows
from dev.interop.tables import ROWS, SourceTable
from dev.servers.stack import Stack

VERSION = "4.4.0"
_HERE = Path(__file__).parent
_PAGE = _HERE.parents[1] / "docs" / "consumers.md"
_TYPES: Mapping[str, str] = {
    "bigint": "Int64",
    "int": "Int32",
    "decimal": "Decimal(14, 2)",
    "varchar": "String",
    "datetime": "DateTime64(6)",
    "date": "Date32",
    "double": "Float64",
    "blob": "String",
}


def replacing_table(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows from the upsert projection, read through tables that keep the newest row for each key.

    Raises:
        ReaderError: ClickHouse is not available, or it failed.
    """
    try:
        python = environment("clickhouse", [f"chdb=={VERSION}"])
    except NotInstalledError as error:
        raise ReaderError(str(error)) from None
    found: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for number, table in enumerate(tables):
            file = Path(folder) / f"{number}.jsonl"
            file.write_text("".join(_line(record) for record in stack.records(table.topic(ROWS))), encoding="utf-8")
            lines.append(json.dumps({"levels": table.levels, "statements": clickhouse_statements(table.shape, file)}))
        ran = subprocess.run(
            [python, _HERE / "clickhouse_rows.py"],
            input="\n".join(lines),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=SECONDS,
        )
    if ran.returncode:
        raise ReaderError(f"ClickHouse exited with code {ran.returncode}: {ran.stderr[-3000:]}")
    for line in ran.stdout.splitlines():
        answer = json.loads(line, parse_float=str, parse_int=str)
        found[answer["levels"]] = answer["rows"]
    return found


def _line(record: Any) -> str:
    key, value = (None if part is None else part.decode() for part in (record.key(), record.value()))
    return json.dumps({"key": key, "value": value, "offset": record.offset()}) + "\n"


def clickhouse_statements(shape: ShopTable, file: Path) -> list[str]:
    """Return the page's statements for a table and its records. The last statement returns the table's rows.

    Raises:
        ReaderError: the page does not have the expected statements.
    """
    section = _PAGE.read_text(encoding="utf-8").partition("\n## ClickHouse\n")[2]
    found = re.search(r"^```sql\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    if found is None or found[1].count(columns_of(ORDERS)) != 2:
        raise ReaderError("docs/consumers.md has no statements for ClickHouse")
    text = found[1].replace(columns_of(ORDERS), columns_of(shape)).replace("(id)", f"({', '.join(shape.key)})")
    text = re.sub(rf"\b(TABLE|INTO|FROM) {ORDERS.name}\b", rf"\1 {shape.name}", text).replace("rows.jsonl", str(file))
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def columns_of(shape: ShopTable) -> str:
    """Return a table's columns as ClickHouse declarations."""
    told = []
    for column in shape.columns:
        kind = _TYPES[column.kind]
        told.append(f"{column.name} {kind if column.name in shape.key else f'Nullable({kind})'}")
    return ", ".join(told)
