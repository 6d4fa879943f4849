"""Every form of an event decodes to the same change, and the reader rejects everything else."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal

import avro.io
import avro.schema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, Column, Issue, TableSchema, avro_schema
from cdc_core.reader import Change, ChangeReader, KnownSchemas, Missing, ReadError, TableId, UnknownSchema, decode
from tests.cdc_core.reader.sources import FORMS, value_of
from tests.sizes import examples
from tests.translator.codecs.corpus import CORPUS
from tests.translator.codecs.test_avro import BY_HAND, SMALL
from tests.translator.examples import UPDATE
from tests.translator.strategies import events
from translator.codecs import Codec
from translator.codecs.avro import HEADER, AvroCodec, confluent_header

VERSION_1 = events().map(lambda event: msgspec.structs.replace(event, v=1))
EVERY_FORM = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())


@EVERY_FORM
@given(event=VERSION_1)
def test_any_event(make: Callable[[], Codec], event: ChangeEvent) -> None:
    """An event survives encoding and decoding, including the text of its images."""
    assert event == decode(value_of(make(), event))


@EVERY_FORM
@pytest.mark.parametrize("name", CORPUS)
def test_corpus(make: Callable[[], Codec], name: str) -> None:
    """Every field, branch and edge of the schema decodes correctly."""
    event = msgspec.structs.replace(CORPUS[name], v=1)
    assert event == decode(value_of(make(), event))


def test_golden() -> None:
    """Bytes written by hand from the Avro specification decode to the event."""
    parts = [part for _, *parts in BY_HAND for part in parts]
    datum = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
    for head in ("c3011aa4b45bd6db449a", "0000000007"):
        assert SMALL == decode(bytes.fromhex(head) + datum)


DATUM = value_of(AvroCodec(), UPDATE).removeprefix(HEADER)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        DATUM,
        b"{",
        b'{"v":1}',
        b"[" * 5000,
        b'{"v":' * 5000,
        HEADER,
        HEADER + DATUM[:-1],
        HEADER + DATUM + b"\x00",
        b"\xc3\x01" + bytes(8) + DATUM,
        b"\x00\x00\x00",
        b"\x00\x00\x00\x00\x07\x02\xfe\xff\xff\xff\x0f" + DATUM,
        b"\x00\x00\x00\x00\x07" + DATUM[:-1],
    ],
)
def test_what_is_no_event(value: bytes) -> None:
    """The reader rejects the value and never guesses."""
    with pytest.raises(ReadError, match="is not an event"):
        decode(value)


@EVERY_FORM
def test_another_version(make: Callable[[], Codec]) -> None:
    """The reader rejects version 2, which has another meaning."""
    with pytest.raises(ReadError, match="version 2, but this reader only supports 1"):
        decode(value_of(make(), msgspec.structs.replace(UPDATE, v=2)))


@examples(4)
@given(VERSION_1, st.sampled_from([*FORMS.values()]), st.data())
def test_damaged(event: ChangeEvent, make: Callable[[], Codec], data: st.DataObject) -> None:
    """A value with changed bytes decodes to another event or raises a ReadError, never anything else."""
    value = bytearray(value_of(make(), event))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ReadError):
        ChangeReader().read(bytes(value))


ADDED = {"name": "added_later", "type": ["null", "string"], "default": None}
LATER = {**avro_schema(), "fields": [*avro_schema()["fields"], ADDED]}


def _later_datum() -> bytes:
    out = io.BytesIO()
    plain = {**avro_schema(logical=False), "fields": [*avro_schema(logical=False)["fields"], ADDED]}
    writer = avro.io.DatumWriter(avro.schema.parse(json.dumps(plain)))
    writer.write({**msgspec.to_builtins(UPDATE), "added_later": "x"}, avro.io.BinaryEncoder(out))
    return out.getvalue()


class TestLaterReleases:
    """Later releases add fields after those of this release."""

    def test_by_fingerprint(self) -> None:
        """The record is readable with its schema and rejected without it."""
        value = b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08" + _later_datum()
        with pytest.raises(ReadError, match="Avro with a known schema"):
            ChangeReader().read(value)
        reader = ChangeReader(later={"0102030405060708": json.dumps(LATER)})
        assert UPDATE == reader.read(value).event

    @pytest.mark.parametrize("later", [{}, {9: json.dumps(LATER)}])
    def test_by_id(self, later: dict[str | int, str]) -> None:
        """The datum declares version 1, so it begins with the fields known here."""
        assert UPDATE == ChangeReader(later=later).read(confluent_header(9) + _later_datum()).event

    def test_json(self) -> None:
        """Unknown fields are ignored, and missing ones are null."""
        fields = msgspec.json.decode(value_of(FORMS["json"](), UPDATE))
        del fields["ext"]
        value = msgspec.json.encode(fields | {"added_later": 1})
        assert msgspec.structs.replace(UPDATE, ext=None) == ChangeReader().read(value).event


SCHEMA = TableSchema.of(
    "shop", "shop", "dbo", "orders", [Column("id", "int64", key=1), Column("price", "decimal(9,2)")], "primary"
)


def _row(**fields: object) -> ChangeEvent:
    return msgspec.structs.replace(UPDATE, **{"schema_id": SCHEMA.id, **fields})


@pytest.fixture
def schemas() -> KnownSchemas:
    known = KnownSchemas()
    known.learn(None)
    known.learn(msgspec.json.encode(SCHEMA))
    return known


class TestImages:
    def test_types(self, schemas: KnownSchemas) -> None:
        """Values have the types of the schema that the event references."""
        change = Change.of(_row(), schemas)
        assert ({"id": 7, "price": Decimal("9.90")}, {"id": 8, "price": Decimal("12.50")}) == (
            change.before,
            change.after,
        )
        assert ({"id": 8}, {"id": 7}, "shop/shop/dbo/orders") == (change.key, change.key_old, str(change.table))

    def test_no_schema_named(self, schemas: KnownSchemas) -> None:
        """The table's newest schema is used. A value that does not fit its type stays unchanged."""
        change = Change.of(_row(schema_id=None, before='{"price":"cheap"}'), schemas)
        assert (Decimal("12.50"), "cheap") == (change.new("price"), change.old("price"))

    def test_without_schemas(self) -> None:
        """Values have their JSON types."""
        change = ChangeReader().read(value_of(AvroCodec(), _row()))
        assert ("12.50", None) == (change.new("price"), change.schema)

    def test_a_schema_that_was_not_learned(self) -> None:
        """The reader rejects the event instead of guessing types."""
        with pytest.raises(UnknownSchema, match="read the whole schemas topic"):
            Change.of(_row(), KnownSchemas())

    @pytest.mark.parametrize("after", ['{"id":8,"price":"cheap"}', '{"id":8,"price":[1]}', "[1]", "{"])
    def test_what_is_none_of_its_schema(self, schemas: KnownSchemas, after: str) -> None:
        """The value is rejected, and the error does not show it."""
        with pytest.raises(ReadError, match=r"price of after is not|after is not a JSON object") as caught:
            Change.of(_row(after=after), schemas)
        assert "cheap" not in str(caught.value)

    def test_absent_unavailable_and_null(self, schemas: KnownSchemas) -> None:
        """The reader distinguishes the three, and keeps a good new value even if the old one has an issue."""
        change = Change.of(
            _row(
                after='{"id":8,"price":null}',
                unavailable=["photo"],
                issues=[Issue("born", "ZERO_DATE"), Issue("price", "ZERO_DATE")],
            ),
            schemas,
        )
        assert (None, Missing.UNAVAILABLE, Missing.UNAVAILABLE, Missing.ABSENT) == tuple(
            map(change.new, ("price", "photo", "born", "note"))
        )
        assert frozenset({"photo", "born"}) == change.withheld

    def test_schemas_of_another_topic(self) -> None:
        """A record that is not a table schema is rejected."""
        with pytest.raises(ReadError, match="this is the right topic"):
            KnownSchemas().learn(b'{"v":1}')

    def test_newest(self, schemas: KnownSchemas) -> None:
        """The last learned schema is the newest, until an event references one."""
        table = TableId.of(SCHEMA)
        later = TableSchema.of("shop", "shop", "dbo", "orders", [Column("id", "int64", key=1)], "primary")
        schemas.add(later)
        assert later == schemas.newest(table)
        assert SCHEMA == schemas.get(table, SCHEMA.id) == schemas.newest(table)


IMPORTED = """
import sys
before = set(sys.modules)
import cdc_core.reader
print(*{name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
"""
# Optional imports of fastavro.
OF_FASTAVRO = {"cramjam", "typing_extensions", "zstandard"}


def test_few_dependencies() -> None:
    """Importing the reader does not import Kafka, Spark or other packages that only the programs need."""
    ran = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=60)
    imported = {name for name in ran.stdout.split() if "cython" not in name}
    assert {"cdc_core", "fastavro", "msgspec"} == imported - OF_FASTAVRO
