"""A name of any length is a dead letter or a table, on both paths, and never ends a process."""

import json
from typing import Any

import pytest

from tests.translator.dialects.dts_avro.composer import integer
from tests.translator.dialects.dts_avro.composer import row as dts_row
from tests.translator.native import needs_extension
from tests.translator.native.test_pipeline import LETTERS, PLACE, Run
from tests.translator.service._pipeline import CANAL_ROW
from translator.message import NAME_BYTES, TableName

pytestmark = needs_extension

LONGEST = "n" * (NAME_BYTES - 1) + "1"
WIDE = "\u00e9" * (NAME_BYTES // 2) + "1"


def canal(name: str, **members: Any) -> bytes:
    return json.dumps(CANAL_ROW | {"table": name, **members}).encode()


def untyped(name: str) -> bytes:
    """Return a message whose table has no schema to publish."""
    return canal(name, mysqlType=None, sqlType=None, pkNames=None)


def shareplex(name: str) -> bytes:
    return json.dumps({"meta": {"op": "ins", "table": f"HR.{name}", "scn": "1"}, "data": {"ID": "1"}}).encode()


def qlik(name: str) -> bytes:
    headers = {"operation": "INSERT", "changeSequence": "1", "schema": "HR", "table": name}
    return json.dumps({"data": {"ID": 1}, "beforeData": None, "headers": headers}).encode()


def dts_avro(name: str) -> bytes:
    return dts_row("INSERT", {"id": (3, integer(1))}, objectName=f"shop.{name}")


SENT = {
    "canal": ({"profile": "oss"}, canal),
    "canal without types": ({"profile": "flink_cdc"}, untyped),
    "shareplex": ({}, shareplex),
    "qlik": ({"untyped": "translate"}, qlik),
    "dts_avro": ({}, dts_avro),
}


@pytest.mark.parametrize("name", [LONGEST, WIDE, "n" * 100_000], ids=["longest", "wide", "huge"])
@pytest.mark.parametrize("sender", SENT)
def test_tables(sender: str, name: str) -> None:
    """A table name that is too long is LIMIT_EXCEEDED, and other tables continue."""
    options, message = SENT[sender]
    left = []
    for native in (True, False):
        run = Run(native=native, dialect=sender.partition(" ")[0], **options)
        run.of([message("orders"), message(name), message("orders")])
        run.of([message("orders"), message(name), message("orders")], first=3)
        codes = [dict(letter.headers)["cdc-error-code"] for letter in run.delivery.written(LETTERS.topic, 0)]
        assert [b"LIMIT_EXCEEDED"] * (2 if name != LONGEST else 0) == codes
        assert (4 if name != LONGEST else 6) == len(run.delivery.written("out", PLACE))
        left.append(run.left)
    assert left[0] == left[1]


def test_columns() -> None:
    """A schema whose column has a name that is too long is not published."""
    odd = canal("orders", mysqlType={"id": "int", WIDE: "int"}, data=[{"id": "1", WIDE: "2"}])
    run = Run(native=True, profile="oss")
    run.of([odd, canal("orders")])
    (letter,) = run.delivery.written(LETTERS.topic, 0)
    assert b"LIMIT_EXCEEDED" == dict(letter.headers)["cdc-error-code"]
    assert 1 == len(run.delivery.written("out", PLACE))


def test_the_longest_name_is_a_name() -> None:
    assert LONGEST == TableName(LONGEST, LONGEST, LONGEST).table
