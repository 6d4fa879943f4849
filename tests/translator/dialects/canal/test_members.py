"""Members of a Canal message: unknown, absent and of other types, names, and independence from other messages."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.canal.messages import (
    UPDATE,
    canal,
    decode,
    message,
    of_type,
    other,
    refused,
    row,
    update,
)
from translator.errors import MessageError
from translator.message import TableName


@pytest.mark.requirement("canal.accept.1")
@pytest.mark.parametrize("value", [None, 1, "x", [], {"type": "DELETE", "data": [{"id": "8"}]}])
def test_unknown_members_are_ignored(value: Any) -> None:
    """Unknown members do not change the outcome, whatever they contain."""
    assert decode(UPDATE) == decode(update(more=value))


@pytest.mark.requirement("canal.accept.2")
@pytest.mark.parametrize(
    ("member", "body"),
    [
        ("data", of_type("DELETE", None, [{"id": "7"}])),
        ("old", of_type("DELETE", [{"id": "7"}], None)),
        ("old", of_type("INIT", [{"id": "7"}], None)),
        ("sqlType", update(sqlType=None)),
    ],
)
def test_absent_members_of_dts_are_null(member: str, body: dict[str, Any]) -> None:
    """DTS omits the image that an operation does not have, and need not send `sqlType`."""
    absent = {name: value for name, value in body.items() if name != member}
    assert decode(body, profile="dts") == decode(absent, profile="dts")


@pytest.mark.requirement("canal.accept.4")
@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
def test_id_is_a_64_bit_integer(number: int) -> None:
    """Every digit is kept, even beyond the precision of a double."""
    assert str(number) == row(update(id=number)).pos_native


@pytest.mark.requirement("canal.accept.4")
@pytest.mark.parametrize("profile", ["oss", "dts", "ticdc", "flink_cdc", "auto"])
@pytest.mark.parametrize("member", ["id", "es", "ts"])
def test_integers_as_text_are_refused(member: str, profile: str) -> None:
    """No known writer sends them, and no profile accepts them."""
    error = refused(update(**{member: str(UPDATE[member])}), profile=profile)
    assert ("INVALID_FIELD", f"$.{member}") == (error.code, error.path)


BODY = json.dumps(UPDATE).encode()
LZ4 = b"\x04\x22\x4d\x18\x60\x40\x82" + (len(BODY) | 1 << 31).to_bytes(4, "little") + BODY + bytes(4)
"""An LZ4 frame with one stored block, which contains the plain message."""


@pytest.mark.requirement("canal.reject.1")
@pytest.mark.parametrize("value", [gzip.compress(BODY, mtime=0), LZ4], ids=["gzip", "lz4"])
def test_compressed_bytes_are_refused(value: bytes) -> None:
    """A value compressed by its writer is not JSON. Kafka's own compression is undone by its client."""
    with pytest.raises(MessageError) as caught:
        canal().decode(message(value))
    assert "MALFORMED_JSON" == caught.value.code


@pytest.mark.requirement("canal.do_not.7")
def test_names_keep_their_case() -> None:
    """Two columns can differ only in case. Databases, tables and keys keep their spelling."""
    names = {"database": "Shop", "table": "Orders"}
    change = row(
        of_type("INSERT", [{"ID": "1", "id": "2"}], mysqlType={"ID": "int", "id": "int"}, pkNames=["ID"], **names)
    )
    assert (TableName("Shop", None, "Orders"), {"ID": 1, "id": 2}) == (change.table, change.after)
    assert ("ID",) == change.key_columns
    assert change.schema is not None
    assert [("ID", 1), ("id", None)] == [(column.name, column.key) for column in change.schema.columns]
    ddl = other(of_type("ALTER", sql="ALTER TABLE Orders ADD C INT", **names)).ddl
    assert ddl is not None
    assert ["Shop.Orders"] == ddl.tables


@pytest.mark.requirement("canal.do_not.9")
def test_a_row_needs_no_other_message() -> None:
    """DDL can be in another partition, before or after its rows. It does not affect how they are read."""
    types = {**UPDATE["mysqlType"], "more": "int"}
    wider = of_type("INSERT", [{"id": "7", "name": "new", "n": None, "more": "1"}], mysqlType=types)
    ddl = of_type("ALTER", sql="ALTER TABLE orders ADD more INT", mysqlType=None, pkNames=None)
    elsewhere = msgspec.structs.replace(message(json.dumps(ddl).encode()), partition=1)
    alone, informed = canal(), canal()
    informed.decode(elsewhere)
    assert {"id": 7, "name": "new", "n": None, "more": 1} == row(wider, alone).after
    assert decode(wider, alone) == decode(wider, informed)
    assert decode(UPDATE, alone) == decode(UPDATE, informed)  # a row from before the DDL
