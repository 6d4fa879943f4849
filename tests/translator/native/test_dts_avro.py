"""Records of DTS in Avro: the native path takes the common ones, and makes of them what the plain way makes."""

from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    Cell,
    binary,
    character,
    encode,
    fields,
    integer,
    record,
    row,
)
from tests.translator.dialects.dts_avro.messages import MYSQL, ORACLE, POSTGRESQL
from tests.translator.dialects.dts_avro.test_differential import CELLS
from tests.translator.dialects.dts_avro.test_fast_path import OF_BRANCH, TYPES
from tests.translator.native import dts_avro_mutants, needs_extension
from tests.translator.native.dts_avro_mutants import common, mutants
from tests.translator.native.test_equality import agree, opened_path
from translator.dialects import build
from translator.message import DeclaredTable, Message, Setup

pytestmark = needs_extension

OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "all": {"unique_key_as_key": True, "logical_names": True, "transactions": True, "extras": True},
    "micros": {"fraction_unit": "micros"},
    "nanos": {"fraction_unit": "nanos", "extras": True},
}
DECLARED = {
    "nothing": (),
    "columns": (DeclaredTable("*", key=("a1",), columns={"a0": "uint64", "a1": "bytes", "a2": "decimal(12,2)"}),),
}


def message(value: bytes, offset: int = 7) -> Message:
    return Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc")


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("declared", DECLARED)
def test_both_ways_agree_on_mutants(name: str, declared: str) -> None:
    translator, path = opened_path(build("dts_avro", Setup("source", tables=DECLARED[declared]), OPTIONS[name]))
    sent = islice(mutants(Random(name + declared)), 16 * settings.default.max_examples)
    found = Counter(agree(translator, path, message(value, offset)) for offset, value in enumerate(sent))
    assert found["taken"] > found.total() / 10
    assert {"shape", "spelling", "layout", "cell"} <= found.keys()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_common_records_are_taken(name: str, version: str) -> None:
    """Of each source and operation, each kind of cell among them."""
    translator, path = opened_path(build("dts_avro", Setup("source"), OPTIONS[name]))
    chance = Random(name)
    values = [encode(common(chance), version) for _ in range(200)]
    found = Counter(agree(translator, path, message(value)) for value in values)
    # A declared unit leaves fractions over that are of the other one.
    assert found["taken"] == 200 or name == "micros"
    assert found["taken"] > 100


@pytest.mark.parametrize("branch", OF_BRANCH)
@examples(8)
@given(data=st.data(), type_=st.sampled_from(TYPES), source=st.sampled_from((MYSQL, POSTGRESQL, ORACLE)))
def test_a_cell_of_a_type(branch: str, data: st.DataObject, type_: str, source: tuple[str, str]) -> None:
    """Alone in its row, in both images, of which the other may hold anything."""
    cells = OF_BRANCH[branch]
    before, after = data.draw(cells | CELLS), data.draw(cells)
    sent = record(
        "UPDATE", source=source, fields=fields(c=3), beforeImages=[before], afterImages=[after], objectName="d.t"
    )
    tables = (DeclaredTable("*", columns={"c": type_}),)
    translator, path = opened_path(build("dts_avro", Setup("source", tables=tables), {}))
    assert agree(translator, path, message(encode(sent, "v3"))) in ("taken", "cell")


COLUMNS = [
    (source, version, number, cell)
    for source, version, columns in dts_avro_mutants.SOURCES
    for number, cell in columns
    # Geometry, intervals, and what is named by a charset other than UTF-8.
    if number not in (255, 183) and cell not in dts_avro_mutants.CHARSETS
]


@pytest.mark.parametrize(("source", "version", "number", "cell"), COLUMNS)
def test_common_cells_are_read_without_their_converter(
    source: str, version: str, number: int, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_bytes", lambda sent, convert: asked.append(sent) or b"null"
    )
    _, path = opened_path(build("dts_avro", Setup("source"), {}))
    (taken,) = path.take([message(row("INSERT", {"c": (number, cell)}, source=(source, version)))])
    assert not isinstance(taken, str)
    assert [] == asked


def test_a_row_that_contradicts_the_numbers_of_its_columns_is_taken() -> None:
    """As every row with a TEXT does. One that is null in the next row has its number's type again."""
    translator, path = opened_path(build("dts_avro", Setup("source"), {}))
    sent = [
        row("INSERT", {"a": (252, character("text")), "b": (253, binary(b"\xff"))}),
        row("INSERT", {"a": (252, None), "b": (253, binary(b"\xff"))}),
        row("INSERT", {"a": (252, binary(b"\xff")), "b": (253, character("text"))}),
        row("INSERT", {"a": (252, character("text")), "b": (253, None)}),
    ]
    assert ["taken"] * 4 == [agree(translator, path, message(value)) for value in sent]
    schemas = [taken.operation.schema_key for taken in path.take([*map(message, sent)]) if not isinstance(taken, str)]
    assert len(set(schemas)) == 4
    both = row("UPDATE", {"a": (252, character("text"))}, beforeImages=[binary(b"\xff")])
    assert agree(translator, path, message(both)) == "cell"


def test_withheld_values_are_taken() -> None:
    """Of either image, but for those of the key."""
    translator, path = opened_path(build("dts_avro", Setup("source"), {}))
    keyed = {"tags": {"pk_uk_info": '{"PRIMARY":["a"]}'}}
    one, two, columns = integer(1), integer(2), {"a": 3, "b": 3, "c": 3}

    def became(operation: str, before: list[Cell] | None, after: list[Cell] | None) -> str:
        sent = record(operation, fields=fields(**columns), beforeImages=before, afterImages=after, **keyed)
        return agree(translator, path, message(encode(sent, "v3")))

    assert became("UPDATE", [one, NONE, NONE], [one, two, None]) == "taken"
    assert became("UPDATE", [one, one, two], [one, NONE, two]) == "taken"
    assert became("UPDATE", [one, one, NONE], [one, NONE, NONE]) == "taken"
    assert became("INSERT", None, [one, NONE, None]) == "taken"
    assert became("DELETE", [one, NONE, NONE], None) == "taken"
    assert became("UPDATE", [NONE, one, one], [one, two, one]) == "key"
    assert became("UPDATE", [one, NONE, NONE], [NONE, two, two]) == "key"
    assert became("DELETE", [NONE, NONE, NONE], None) == "key"
    keyed["tags"].clear()
    assert became("DELETE", [NONE, NONE, NONE], None) == "taken"


def test_a_cell_that_did_not_change_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_bytes", lambda sent, convert: asked.append(sent) or b"null"
    )
    cell = next(cell for number, cell in dts_avro_mutants.MYSQL if number == 255)
    sent = row("UPDATE", {"c": (255, cell)}, beforeImages=[cell])
    _, path = opened_path(build("dts_avro", Setup("source"), {}))
    (taken,) = path.take([message(sent)])
    assert not isinstance(taken, str)
    assert len(asked) == 1
