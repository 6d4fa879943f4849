"""Each kind of native cell writes what its converter writes, for every spelling that it accepts."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.steps.shop_updates import feed
from tests.sizes import examples
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree, opened_path, registered
from translator import _native
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec
from translator.dialects import build
from translator.message import DeclaredTable, Message, Setup
from translator.values import CANONICAL_TYPES

pytestmark = needs_extension

TYPES = (
    *("tinyint", "tinyint unsigned", "smallint", "mediumint", "mediumint unsigned", "int", "int unsigned", "bigint"),
    *("bigint unsigned", "year", "bit(8)", "bit(1)", "decimal(12,2)", "decimal(5,0)", "decimal(3,3)", "decimal"),
    *("double", "float", "date", "datetime(6)", "timestamp", "time(3)", "varchar(20)", "json", "blob", "enum('a','b')"),
)
NUMBERS = st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,10})?", fullmatch=True)
TIMES = st.from_regex(
    r"[0-9]{4}-[01][0-9]-[0-3][0-9]([ T][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?)?", fullmatch=True
)
CLOCKS = st.from_regex(r"-?[0-9]{2,3}:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?", fullmatch=True)
CELLS = st.none() | NUMBERS | TIMES | CLOCKS | st.floats().map(repr) | st.integers().map(str) | st.text(max_size=8)

OUTPUTS = (AvroCodec(), JsonCodec(), registered("debezium_avro", unavailable="null"))
TRANSLATOR, PATH = (
    opened_path(build("canal", Setup("src"), {}), codecs=OUTPUTS) if _native.absence() is None else (None, None)
)


@pytest.mark.parametrize("type_", TYPES)
@examples(0.5)
@given(cell=CELLS, changed=CELLS)
def test_a_cell_of_a_type(type_: str, cell: str | None, changed: str | None) -> None:
    """This holds for the only column of a row, in the old and in the new image."""
    body = {
        "data": [{"c": cell}],
        "database": "d",
        "es": 1_700_000_000_000,
        "id": 7,
        "isDdl": False,
        "mysqlType": {"c": type_},
        "old": [{"c": changed}],
        "pkNames": None,
        "sql": "",
        "table": "t",
        "ts": 1_700_000_000_123,
        "type": "UPDATE",
    }
    assert TRANSLATOR is not None
    assert PATH is not None
    value = msgspec.json.encode(body)
    became = agree(TRANSLATOR, PATH, Message("raw", 0, 5, 1, None, value), OUTPUTS)
    # In the first row, canal lists no unchanged column. Avro has no numbers with too many digits, and no NaN.
    assert became in ("taken", "cell", "projection") or (became == "shape" and cell == changed)


WORDS = st.sampled_from(["t", "f", "true", "True", "0", "1", "b'1'", "{}", "-0", "-0.0", "1.50", "é\u0007", ""])
SCALARS = NUMBERS | st.sampled_from(["true", "false", "null"]) | (CELLS | WORDS).map(lambda cell: json.dumps(cell))


@pytest.mark.parametrize("type_", [*CANONICAL_TYPES, "decimal(12,2)", "decimal(5,0)"])
@examples(2)
@given(scalar=SCALARS)
def test_a_scalar_of_a_declared_type(type_: str, scalar: str) -> None:
    """SharePlex also sends numbers and booleans."""
    body = {"meta": {"op": "ins", "table": "D.T", "time": "2026-01-05T08:00:09", "scn": "7"}, "data": {"c": "cell"}}
    value = json.dumps(body, separators=(",", ":")).replace('"cell"', scalar).encode()
    declared = (DeclaredTable("*", columns={"c": type_}),)
    dialect = build("shareplex", Setup("source", tables=declared), {"preset": "quest"})
    translator, path = opened_path(dialect, codecs=OUTPUTS)
    became = agree(translator, path, Message("raw", 0, 5, 1, None, value), OUTPUTS)
    assert became in ("taken", "cell", "spelling", "projection")


AVRO_VALUES = {
    "boolean": [b"true", b"false", b"1"],
    "int8": [b"-128", b"0"],
    "int32": [b"-2147483648", b"2147483647"],
    "int64": [b"-9223372036854775808", b"9223372036854775807"],
    "uint64": [b"18446744073709551615"],
    "float32": [b"1.5", b"-0.1", b"3.4028235e38", b"16777217"],
    "float64": [b"1.7976931348623157e308", b"-5e-324", b"0.1"],
    "decimal(12,2)": [b'"-0.05"', b'"9999999999.99"', b'"0"', b'"-128"', b'"327.68"', b'"-1.28"', b"12.50"],
    "decimal(38,10)": [b'"9999999999999999999999999999.9999999999"', b'"-0.0000000001"'],
    "decimal": [b'"1.50"'],
    "string": ['"é\\n\\"\\\\\\u0007"'.encode(), b'""', b"null"],
    "json": [b'"{\\"a\\":[1]}"'],
    "date": [b'"2026-01-05"'],
}


@pytest.mark.parametrize("cell", ["", "a", "ab", "abc", "\u00ff\u00ef>"])
def test_bytes_are_written_in_avro(cell: str) -> None:
    (message,) = feed("canal", 5, 1).messages
    body = msgspec.json.decode(message.value or b"")
    body |= {"mysqlType": {"id": "int", "c": "blob"}, "data": [{"id": "1", "c": cell}], "old": None, "type": "INSERT"}
    translator, path = opened_path(build("canal", Setup("source"), {"profile": "oss"}), codecs=OUTPUTS)
    assert agree(translator, path, Message("raw", 0, 5, 1, None, msgspec.json.encode(body)), OUTPUTS) == "taken"


@pytest.mark.parametrize("type_", AVRO_VALUES)
def test_common_values_are_written_in_avro(type_: str) -> None:
    declared = (DeclaredTable("*", key=("id",), columns={"id": "int64", "c": type_}),)
    dialect = build("shareplex", Setup("source", tables=declared), {"preset": "quest"})
    translator, path = opened_path(dialect, codecs=OUTPUTS)
    for value in AVRO_VALUES[type_]:
        sent = b'{"meta":{"op":"ins","table":"D.T","time":"2026-01-05T08:00:09","scn":"7"},"data":{"id":1,"c":%b}}'
        assert agree(translator, path, Message("raw", 0, 5, 1, None, sent % value), OUTPUTS) == "taken", value


def test_common_cells_are_read_without_their_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """This covers all columns of the benchmark's table, except numbers with an exponent."""
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_cell", lambda text, convert: asked.append(text) or b"null"
    )
    common = feed("canal", 12, 50)
    _, path = opened_path(common.dialect)
    path.take(common.messages)
    assert [] == [text for text in asked if b"e" not in text]
