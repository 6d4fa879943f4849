"""The readers: each makes rows of a topic, a mapping from column to text for each row."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dev.interop.jars import jars
from dev.java import find_java
from dev.stack import Stack

Rows = list[Mapping[str, Any]]

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "consumers.md"
SECONDS = 600  # of a reader: a bound for what hangs
ROWS, CONNECT, DEBEZIUM = "cdc.rows", "cdc.connect", "cdc.debezium"
PROJECTIONS: Sequence[Mapping[str, Any]] = (
    {"topic": ROWS, "codec": "upsert", "options": {"key": "columns"}},
    {"topic": CONNECT, "codec": "upsert", "options": {"key": "columns", "schema_block": True}},
    {"topic": DEBEZIUM, "codec": "debezium"},
)

# What Flink 1.20 opens for itself in its own scripts, for Java 17.
_OPENED = (
    "java.lang",
    "java.util",
    "java.time",
    "java.util.concurrent",
    "java.nio",
    "java.net",
    "java.io",
    "java.math",
)


class ReaderError(Exception):
    """A reader ended with an error; the message has the end of what it said."""


def upsert_kafka(stack: Stack, columns: Sequence[str]) -> Rows:
    """Flink SQL, by the statement of the page."""
    return _flink(flink_statement(stack.bootstrap), columns)


def debezium_json(stack: Stack, columns: Sequence[str]) -> Rows:
    """Flink SQL with the changes that the page names."""
    return _flink(debezium_statement(stack.bootstrap), columns)


def connect_json(stack: Stack, columns: Sequence[str]) -> Rows:
    """The JSON converter of Kafka Connect, record by record."""
    records = sorted(stack.records(CONNECT), key=lambda record: (record.partition(), record.offset()))
    lines = "".join(f"{_text(record.key())}\t{_text(record.value())}\n" for record in records)
    return _java("connect", "ConnectRows", columns, columns, lines)


READERS: Mapping[str, Callable[[Stack, Sequence[str]], Rows]] = {
    "Flink SQL, upsert-kafka": upsert_kafka,
    "Flink SQL, debezium-json": debezium_json,
    "Kafka Connect, JSON converter": connect_json,
}


def flink_statement(bootstrap: str) -> str:
    """The statement of the page, for a topic that ends.

    Raises:
        ReaderError: the page has none.
    """
    section = PAGE.read_text(encoding="utf-8").partition("\n## Flink SQL\n")[2]
    found = re.search(r"^```sql\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReaderError("docs/consumers.md has no statement for Flink")
    statement = found[1].strip().replace("broker:9092", bootstrap)
    return f"{statement.removesuffix(')')}, 'scan.bounded.mode' = 'latest-offset', 'properties.group.id' = 'interop')"


def debezium_statement(bootstrap: str) -> str:
    """The same for the Debezium projection.

    Raises:
        ReaderError: the statement of the page is another.
    """
    statement = flink_statement(bootstrap)
    formats = "'key.format' = 'json', 'value.format' = 'json', 'value.json.timestamp-format.standard' = 'ISO-8601'"
    for found, instead in (
        (formats, "'format' = 'debezium-json', 'debezium-json.timestamp-format.standard' = 'ISO-8601'"),
        ("'connector' = 'upsert-kafka'", "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset'"),
        (f"'{ROWS}'", f"'{DEBEZIUM}'"),
    ):
        if found not in statement:
            raise ReaderError(f"docs/consumers.md has no {found} in its statement for Flink")
        statement = statement.replace(found, instead)
    return statement


def _flink(statement: str, columns: Sequence[str]) -> Rows:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return _java("flink", "FlinkRows", (statement, "orders", "1"), columns, "", opened)


def _java(
    configuration: str,
    program: str,
    arguments: Iterable[str],
    columns: Sequence[str],
    lines: str,
    options: Sequence[str] = (),
) -> Rows:
    """Run a program from its source, which takes a JDK."""
    command = [str(find_java().executable), *options, "-Xmx1g", "-cp", f"{jars() / configuration}/*"]
    ran = subprocess.run(
        [*command, str(HERE / f"{program}.java"), *arguments],
        input=lines,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    if ran.returncode:
        raise ReaderError(f"{program} ended with exit code {ran.returncode}: {ran.stderr[-2000:]}")
    rows = [line.split("\t")[1:] for line in ran.stdout.splitlines() if line.startswith("row\t")]
    return [dict(zip(columns, map(_cell, row), strict=True)) for row in rows]


def _text(part: bytes | None) -> str:
    return "-" if part is None else base64.b64encode(part).decode()


def _cell(text: str) -> str | None:
    return None if text == "-" else base64.b64decode(text).decode()
