"""The Python of docs/reading.md runs and reads the demo shops. Its Flink table is complete.

tests/translator/codecs/test_second_reader.py runs its Java, and tests/spark_sink/test_second_reader.py its Spark code.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import avro_schema
from cdc_core.reader import Change, ChangeReader, ReadError
from dev.demo.sources import shop_sources
from tests.cdc_core.reader.sources import translated, value_of
from tests.repository.pages import blocks, names, page, run, section, table
from translator.codecs.avro import AvroCodec

READING = page("reading.md")


@pytest.fixture(scope="module")
def python() -> dict[str, Any]:
    """The names that the Python snippets define."""
    return run(*blocks(section(READING, "Python"), "python"))


@pytest.fixture(scope="module")
def shop() -> tuple[dict[str, Any], list[bytes], list[bytes]]:
    """The rows of a shop, the values of its schemas, and the values of its events."""
    source = shop_sources(7)[3]
    events = translated(source, source.messages(120, grow=False))
    schemas = [msgspec.json.encode(schema) for _, schema in events if schema is not None]
    return source.shop.rows, schemas, [value_of(AvroCodec(), event) for event, _ in events]


class TestPython:
    def test_rows(self, python: dict[str, Any], shop: tuple[dict[str, Any], list[bytes], list[bytes]]) -> None:
        """The first snippet produces the rows of the source."""
        rows, schemas, values = shop
        assert {f"canal/shop//{name}": rows[name] for name in rows} == python["tables_of"](schemas, values)

    def test_kept_with_offsets(
        self, python: dict[str, Any], shop: tuple[dict[str, Any], list[bytes], list[bytes]]
    ) -> None:
        """The second snippet stores rows and offsets in one transaction: a failed batch stores neither."""
        rows, _, values = shop
        records = [*enumerate(values)]
        connection, reader = sqlite3.connect(":memory:"), ChangeReader()
        python["keep"](connection, reader, 0, records[:50])
        with pytest.raises(ReadError, match="is not an event"):
            python["keep"](connection, reader, 0, [*records[50:70], (70, b"")])
        assert [(0, 50)] == connection.execute("SELECT * FROM read_to").fetchall()
        python["keep"](connection, reader, 0, records[50:])
        for name in rows:
            assert [(len(rows[name]),)] == connection.execute(f"SELECT count(*) FROM canal_shop_{name}").fetchall()
        connection.close()

    def test_members(self) -> None:
        """The table lists the members of a change."""
        told = [name.partition("(")[0] for name in names(table(section(READING, "Python"), "member of a `Change`"))]
        assert [] == [name for name in told if not hasattr(Change, name)]


FLINK = {"string": "STRING", "int": "INT", "long": "BIGINT", "boolean": "BOOLEAN", "image": "MAP<STRING, STRING>"}


def _flink(type_: Any) -> str:
    """Return the Flink type for the JSON form of an Avro type."""
    if isinstance(type_, list):
        return _flink(type_[1])
    if isinstance(type_, str):
        return FLINK[type_]
    if type_["type"] == "record":
        return f"ROW<{', '.join(map(_flink_column, type_['fields']))}>"
    if type_["type"] == "array":
        return f"ARRAY<{_flink(type_['items'])}>"
    return f"MAP<STRING, {_flink(type_['values'])}>"


def _flink_column(field: dict[str, Any]) -> str:
    image = field["name"] in ("key", "key_old", "before", "after")
    return f"`{field['name']}` {_flink('image' if image else field['type'])}"


def test_flink_columns() -> None:
    """The Flink table lists every field in order, each with the type of its JSON form."""
    (statement,) = blocks(section(READING, "Flink SQL"), "sql")
    columns = re.findall(r"^  (`.*?),?$", statement, re.MULTILINE)
    assert [_flink_column(field) for field in avro_schema(logical=False)["fields"]] == columns
