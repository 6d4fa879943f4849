"""The readers of a Debezium topic accept our records and read nothing false from them."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cdc_core.envelope import Column, TableSchema
from tests.translator.codecs.debezium_readers import (
    ReaderFailed,
    clickhouse,
    connect,
    flink,
    iceberg,
    paimon,
    risingwave,
    root_of,
)
from tests.translator.codecs.debezium_rows import Case, Image, cases
from tests.translator.examples import UPDATE
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.debezium.images import PLACEHOLDERS
from translator.codecs.record import Record
from translator.errors import ErrorCode, MessageError
from translator.values.numbers import INTEGER_BOUNDS

POLICIES = ("merge", "as_create", "partial")
MARKS = {json.loads(bytes(mark)) for mark in PLACEHOLDERS.values()}
REFUSALS = (ErrorCode.UNSUPPORTED_SHAPE, ErrorCode.KEY_CHANGE_INCOMPLETE)


def options(**fixed: Any) -> st.SearchStrategy[Options]:
    """Generate every option value, with the given ones fixed."""
    choices: dict[str, st.SearchStrategy[Any]] = {
        "schema_block": st.booleans(),
        "missing_before": st.permutations(POLICIES).flatmap(
            lambda order: st.builds(tuple, st.sampled_from([order[:size] for size in range(4)]))
        ),
        "unavailable": st.sampled_from(["omit", "placeholder", "fail"]),
        "tombstones": st.booleans(),
    }
    return st.builds(Options, **{**choices, **{name: st.just(value) for name, value in fixed.items()}})


def encoded(case: Case, chosen: Options) -> list[Record]:
    """Return the records. A rejected case ends the example."""
    try:
        return DebeziumCodec(chosen).encode(case.event, case.schema)
    except MessageError as error:
        event(f"refused: {error.code}")
        assume(error.code not in REFUSALS)
        raise


def as_written(case: Case, name: str, value: Any, *, block: bool) -> Any:
    """Return a value in one form that represents all equivalent spellings."""
    types = {column.name: column.type for column in case.schema.columns} if case.schema else {}
    text = not isinstance(value, (str, type(None))) and types.get(name, "unknown") == "unknown"
    return msgspec.json.encode(value).decode() if block and text else value


def truth(case: Case, row: Image | None, *, block: bool) -> Image:
    """Return a true or written row in a comparable form. A value without a declared type can also be text."""
    return {name: as_written(case, name, value, block=block) for name, value in (row or {}).items()}


@given(cases(), options())
def test_nothing_is_invented(case: Case, chosen: Options) -> None:
    """Every value in an image is one that the row had or has. Unknown values are absent."""
    block = chosen.schema_block
    old, new = (truth(case, row, block=block) for row in (case.old, case.new))
    for record in encoded(case, chosen):
        if record.value is not None:
            root = root_of(record, block=block)
            missing = set(json.loads(dict(record.headers).get("cdc-unavailable") or b"[]"))
            after = {name: value for name, value in (root["after"] or {}).items() if name not in missing}
            assert truth(case, after, block=block).items() <= new.items()
            marked = {name: value for name, value in (root["after"] or {}).items() if name in missing}
            assert set(marked.values()) <= (MARKS if chosen.unavailable == "placeholder" else set())
            before = root["before"] or {}
            assert truth(case, before, block=block).items() <= old.items()


@given(cases(), options())
def test_what_is_missing_is_told(case: Case, chosen: Options) -> None:
    """If the table's columns are known, a header lists those without a value in `after`."""
    assume(case.schema is not None)
    for record in encoded(case, chosen):
        if record.value is not None and (after := root_of(record, block=chosen.schema_block)["after"]) is not None:
            missing = json.loads(dict(record.headers).get("cdc-unavailable") or b"[]")
            values = {name for name, value in after.items() if name not in missing}
            assert case.schema is not None
            assert sorted(case.schema.column_names) == sorted([*values, *missing])


@given(cases(), options())
def test_flink(case: Case, chosen: Options) -> None:
    """Flink does not fail and sees the actual operation, except that an update can appear as an insert."""
    records = encoded(case, chosen)
    kinds = "".join(kind for record in records for kind, _ in flink(record, block=chosen.schema_block))
    if case.event.key_old is not None:
        wanted = {"-D+I"}
    elif case.tells_null_key:
        wanted = {"-D+I", "+I"}
    else:
        wanted = {"r": {"+I"}, "c": {"+I"}, "u": {"-U+U", "+I"}, "d": {"-D"}}[case.event.op or ""]
    assert kinds in wanted
    assert kinds != "+I" or case.event.op != "u" or "as_create" in chosen.missing_before


@given(cases(), options())
def test_flink_sums_up(case: Case, chosen: Options) -> None:
    """An update subtracts from a sum the same columns that it adds."""
    for record in encoded(case, chosen):
        rows = dict(flink(record, block=chosen.schema_block))
        if "-U" in rows:
            assert rows["-U"].keys() <= rows["+U"].keys()


@given(cases(), options())
def test_paimon(case: Case, chosen: Options) -> None:
    """Paimon does not fail, finds the table, and deletes by a complete key."""
    for record in encoded(case, chosen):
        for table, kind, row in paimon(record, block=chosen.schema_block):
            assert table == f"{case.event.db}.{case.event.table}"
            root = root_of(record, block=chosen.schema_block)
            if kind == "-D" and "pkNames" in root:
                key = case.event.key if case.event.key_old is None else case.event.key_old
                written = truth(case, row, block=chosen.schema_block)
                assert truth(case, json.loads(key or ""), block=chosen.schema_block).items() <= written.items()


@given(cases(), options(unavailable="omit"))
def test_risingwave(case: Case, chosen: Options) -> None:
    """A table kept by message key has the current row under its key and no other.

    Records without a key belong to rows without one, which such a table does not have.
    """
    key, key_old = (json.loads(text or "null") for text in (case.event.key, case.event.key_old))
    assume(key or key_old)
    # A bare key with that column looks like one with its schema.
    assume(chosen.schema_block or "payload" not in (key or key_old))
    records = encoded(case, chosen)
    table: dict[str, Image] = {} if key_old is None else {json.dumps(key_old): case.old or {}}
    for _ in range(2):  # a second time: duplicates change nothing
        for record in records:
            if record.key is not None:
                risingwave(table, record)
    if case.event.op == "d" or key is None:
        assert {} == table
    else:
        name = json.dumps(key)
        assert [name] == list(table)
        assert (
            truth(case, table[name], block=chosen.schema_block).items()
            <= truth(case, case.new, block=chosen.schema_block).items()
        )


@given(cases(), options(schema_block=True))
def test_clickhouse(case: Case, chosen: Options) -> None:
    """Each record of an event has its own, increasing version. A delete has the row's key."""
    read = [found for record in encoded(case, chosen) if (found := clickhouse(record)) is not None]
    versions = [version for version, _, _ in read]
    assert sorted(set(versions)) == versions
    deleted = [row for _, is_deleted, row in read if is_deleted]
    if not case.tells_null_key:  # then the row without a key is deleted, or only the new one is created
        assert (case.event.op == "d" or case.event.key_old is not None) == bool(deleted)


@given(cases(), options())
def test_iceberg(case: Case, chosen: Options) -> None:
    """The transform finds a row and a table in every record, by schema if that level exists, otherwise by db."""
    for record in encoded(case, chosen):
        if record.value is not None:
            operation, table, _ = iceberg(record, block=chosen.schema_block)
            assert f"{case.event.schema or case.event.db}.{case.event.table}" == table
            assert operation in "IUD"


@given(cases(), options(schema_block=True))
def test_connect(case: Case, chosen: Options) -> None:
    """Connect returns what was written, without misreading a value or turning an absent column into NULL."""
    for record in encoded(case, chosen):
        key = json.loads(record.key or b"null")
        if key is not None:
            assert key["payload"] == connect(key["schema"], key["payload"])
        if record.value is not None:
            document = json.loads(record.value)
            read = connect(document["schema"], document["payload"])
            for member in ("after", "source", "op", "ts_ms", "ts_us"):
                assert document["payload"][member] == read[member]
            if read["after"] is None:
                assert document["payload"]["before"] == read["before"]


RANGES = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}


def complaints(schema: Any, value: Any, where: str = "$") -> list[str]:
    """Return where a value does not match its block, member by member, within the ranges of Connect's types."""
    if value is None:
        return [] if schema["optional"] else [f"{where}: null"]
    kind = schema["type"]
    if kind == "struct":
        declared = {field["field"]: field for field in schema["fields"]}
        wrong = [f"{where}: {name} is not declared" for name in value if name not in declared]
        for name, field in declared.items():
            wrong += complaints(field, value.get(name), f"{where}.{name}")
        return wrong
    if kind == "array":
        return [wrong for item in value for wrong in complaints(schema["items"], item, f"{where}[]")]
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "double": isinstance(value, (int, float)) and not isinstance(value, bool),
        **{name: type(value) is int and -top <= value < top for name, top in RANGES.items()},
    }
    if kind == "bytes":
        return [] if isinstance(value, str) and base64.b64decode(value, validate=True) is not None else [where]
    return [] if fits[kind] else [f"{where}: {type(value).__name__} for {kind}"]


@given(cases(), options(schema_block=True))
def test_the_block_is_true(case: Case, chosen: Options) -> None:
    """Every member of a key and value is declared with its actual type."""
    for record in encoded(case, chosen):
        documents = [json.loads(part) for part in (record.key, record.value) if part is not None]
        assert [] == [wrong for each in documents for wrong in complaints(each["schema"], each["payload"])]


@pytest.mark.parametrize("canonical", list(INTEGER_BOUNDS))
def test_extremes(canonical: str) -> None:
    """The smallest and largest integer of a type fit its declared type."""
    schema = TableSchema.of("s", "d", None, "t", [Column("id", canonical, key=1)], "primary")
    for value in INTEGER_BOUNDS[canonical]:
        row = json.dumps({"id": str(value) if canonical == "uint64" else value})
        change = msgspec.structs.replace(UPDATE, op="c", key=row, key_old=None, after=row, before=None)
        (record,) = DebeziumCodec(Options(schema_block=True)).encode(change, schema)
        documents = [json.loads(part) for part in (record.key, record.value) if part is not None]
        assert [] == [wrong for each in documents for wrong in complaints(each["schema"], each["payload"])]


@given(cases(), options())
def test_same_bytes(case: Case, chosen: Options) -> None:
    """The same event gives the same records, whatever the codec wrote before."""
    first = encoded(case, chosen)
    codec = DebeziumCodec(chosen)
    for _ in range(2):
        assert first == codec.encode(case.event, case.schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "int16", "optional": True}, 2**15),
        ({"type": "int16", "optional": True}, True),
        ({"type": "string", "optional": True}, 7),
        ({"type": "double", "optional": True}, "NaN"),
        ({"type": "string", "optional": False}, None),
        ({"type": "struct", "optional": False, "fields": []}, {"a": 1}),
    ],
)
def test_the_check_of_the_block_can_fail(schema: Any, value: Any) -> None:
    """The check above finds a wrong block."""
    assert [] != complaints(schema, value)


def test_the_readers_can_fail() -> None:
    """The readers above fail where the real ones do."""
    value = b'{"before":null,"after":{"id":1},"source":{"db":"d","table":"t"},"op":"u","ts_ms":1}'
    for reader in (flink, paimon):
        with pytest.raises(ReaderFailed, match="before is null"):
            reader(Record(b"{}", value, []), block=False)
        with pytest.raises(ReaderFailed, match="unknown op t"):
            reader(Record(b"{}", value.replace(b'"u"', b'"t"'), []), block=False)
    with pytest.raises(ReaderFailed, match="the database is null"):
        iceberg(Record(b"{}", value.replace(b'"db":"d"', b'"db":"d","schema":null'), []), block=False)
