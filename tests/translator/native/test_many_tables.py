"""A source may have thousands of tables. The native path compiles the layout of each table once."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench.generators import generate
from bench.generators.history import StreamSpec
from bench.steps.pipeline import MemoryPipeline
from tests.translator.native import needs_extension
from translator._native.layout import RecordForm
from translator.codecs.avro import AvroCodec
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Translator

pytestmark = needs_extension

TABLES, COLUMNS = 1_000, 60
DATABASES = 2_000
SHORT = 5_000


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tables that were compiled, in order."""
    found: list[Any] = []
    original = RecordForm.compiler

    def counting(form: RecordForm, layout_of: Callable[..., Any]) -> Callable[..., Any]:
        compile_table = original(form, layout_of)

        def compile_and_count(*described: bytes) -> Any:
            found.append(described)
            return compile_table(*described)

        return compile_and_count

    monkeypatch.setattr(RecordForm, "compiler", counting)
    return found


def _taken(path: NativePath, values: Sequence[bytes]) -> int:
    messages = [Message("raw", 0, offset, 1_767_600_000_000, None, value) for offset, value in enumerate(values)]
    return sum(not isinstance(one, str) for one in path.take(messages))


def test_many_tables(compiled: list[Any]) -> None:
    stream = generate("canal", StreamSpec(2 * TABLES, COLUMNS, tables=TABLES, skew=0.0))
    pipeline = MemoryPipeline(stream)
    path = native_path(pipeline.translator, [(AvroCodec(), 1_000_000)])
    assert isinstance(path, NativePath)
    values = [message.value for message in stream.messages if message.value is not None]
    assert len(values) == _taken(path, values)
    known = len(compiled)
    assert TABLES / 2 < known == len(set(compiled))
    assert len(values) == _taken(path, values)
    assert known == len(compiled)


def test_the_same_table_in_many_databases(compiled: list[Any]) -> None:
    """With sharding, thousands of databases have a table with the same name."""
    (message,) = generate("canal", StreamSpec(1)).messages
    assert message.value is not None
    before, _, after = message.value.partition(b'"database":"')
    values = [before + b'"database":"shard_%d' % number + after for number in range(DATABASES)]
    path = native_path(
        Translator("bench", build("canal", Setup("bench"), {"profile": "oss"}), Limits()), [(AvroCodec(), 10**6)]
    )
    assert isinstance(path, NativePath)
    assert [DATABASES, DATABASES] == [_taken(path, values), _taken(path, values)]
    assert DATABASES == len(compiled)


@pytest.mark.parametrize("varied", ["database", "mysqlType"])
def test_short_descriptions(compiled: list[Any], varied: str) -> None:
    """However short its descriptions are, a table takes a limited amount of memory: the first ones were dropped."""
    body = {"data": [{"a": "1"}], "table": "t", "type": "INSERT", "es": 1_700_000_000_000, "id": 7, "pkNames": ["a"]}

    def value(number: int) -> bytes:
        given = {"database": "d", "mysqlType": {"a": "int"}}
        given[varied] = {"a": f"int({number})"} if varied == "mysqlType" else f"d{number}"
        return json.dumps({**body, **given}, separators=(",", ":")).encode()

    dialect = build("canal", Setup("bench"), {"profile": "oss"})
    path = native_path(Translator("bench", dialect, Limits()), [(AvroCodec(), 10**6)])
    assert isinstance(path, NativePath)
    values = [value(number) for number in range(SHORT)]
    assert SHORT == _taken(path, values) == len(compiled)
    assert 1 == _taken(path, values[-1:])
    assert SHORT == len(compiled)
    assert 1 == _taken(path, values[:1])
    assert SHORT + 1 == len(compiled)
