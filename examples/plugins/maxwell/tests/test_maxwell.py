"""Messages as Maxwell's documentation shows them, and what the translator makes of them."""

import json
from typing import Any

import pytest

from translator.dialect_api import Message
from translator.operations.file_translator import of_dialect

INSERT = {
    "database": "test",
    "table": "maxwell",
    "type": "insert",
    "ts": 1449786310,
    "xid": 940752,
    "commit": True,
    "primary_key_columns": ["id"],
    "data": {"id": 1, "daemon": "Stanislaw Lem", "price": 12.50, "doc": {"a": [1.0]}, "note": None},
}
UPDATE = {**INSERT, "type": "update", "data": {"id": 1, "daemon": "firebus"}, "old": {"daemon": "Stanislaw Lem"}}


def translated(body: object, *tables: dict[str, Any], **options: Any) -> Any:
    """Return the outcome for a message."""
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    translator = of_dialect("maxwell", {**options, "tables": list(tables)}, "s", [], lambda text: None)
    return translator.translate(Message("maxwell", 0, 0, 0, None, value)).outcome


def event(body: object, *tables: dict[str, Any], **options: Any) -> Any:
    """Return the only event of a message."""
    (found,) = translated(body, *tables, **options).events
    return found


def test_an_insert() -> None:
    """Values keep their form: decimals are exact text, JSON is text, and NULL is not absent."""
    found = event(INSERT)
    image = {"id": 1, "daemon": "Stanislaw Lem", "price": "12.5", "doc": '{"a":[1.0]}', "note": None}
    assert ("c", "test", "maxwell", image) == (found.op, found.db, found.table, json.loads(found.after))
    assert (found.key, found.key_kind, found.ts_commit_us) == ('{"id":1}', "primary", 1449786310_000_000)
    assert (found.tx.id, found.tx.last) == ("940752", True)


def test_an_update() -> None:
    """The old image contains the columns that changed, and the others are filled in."""
    found = event(UPDATE)
    assert json.loads(found.before) == {"id": 1, "daemon": "Stanislaw Lem"}
    assert json.loads(found.after) == {"id": 1, "daemon": "firebus"}


def test_a_key_change() -> None:
    found = event({**UPDATE, "data": {"id": 2}, "old": {"id": 1}})
    assert (found.key, found.key_old) == ('{"id":2}', '{"id":1}')


def test_a_delete() -> None:
    found = event({**INSERT, "type": "delete"})
    assert (found.op, found.after, found.key) == ("d", None, '{"id":1}')


def test_a_declared_key() -> None:
    """Maxwell sends the key's columns only if it is configured to."""
    body = {name: value for name, value in INSERT.items() if name != "primary_key_columns"}
    assert event(body).key is None
    assert event(body, {"table": "test.max*", "key": ["id"]}).key == '{"id":1}'


def test_fractions_as_numbers() -> None:
    assert json.loads(event(INSERT, fractions="number").after)["price"] == 12.5


def test_a_statement() -> None:
    """Maxwell's topic for statements counts milliseconds."""
    body = {"type": "table-alter", "database": "test", "table": "e", "ts": 1477053308000, "sql": "ALTER TABLE e"}
    found = event(body)
    assert (found.kind, found.ddl.sql, found.ts_commit_us) == ("schema", "ALTER TABLE e", 1477053308_000_000)


@pytest.mark.parametrize("type_", ["bootstrap-start", "bootstrap-complete"])
def test_marks(type_: str) -> None:
    assert type_.replace("-", "_") == translated({**INSERT, "type": type_}).reason


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "MALFORMED_JSON"),
        (b'{"type":"insert","type":"delete"}', "INVALID_FIELD"),
        ({**INSERT, "type": "Stanislaw Lem"}, "UNKNOWN_OPERATION"),
        ({**INSERT, "data": None}, "MISSING_FIELD"),
        ({**INSERT, "data": ["Stanislaw Lem"]}, "INVALID_FIELD"),
        ({**UPDATE, "old": None}, "MISSING_FIELD"),
        ({**INSERT, "ts": "Stanislaw Lem"}, "INVALID_FIELD"),
    ],
)
def test_what_is_rejected(body: object, code: str) -> None:
    """The reason never contains a value."""
    found = translated(body)
    assert code == found.code
    assert "Stanislaw" not in found.reason


@pytest.mark.parametrize(("number", "fractions"), [("1e9999999", "text"), ("1e-1001", "text"), ("1.5e999", "number")])
def test_a_number_that_is_too_large(number: str, fractions: str) -> None:
    """A short number in a message never becomes a text of megabytes, and never infinity."""
    body = json.dumps(INSERT).replace("12.5", number).encode()
    assert translated(body, fractions=fractions).code in {"INVALID_FIELD", "LIMIT_EXCEEDED"}


@pytest.mark.parametrize(
    ("number", "canonical"), [(2**63 - 1, 2**63 - 1), (2**63, str(2**63)), (-(10**64), f"-{10**64}")]
)
def test_a_whole_number_beyond_64_bits(number: int, canonical: object) -> None:
    """A DECIMAL without a fraction has up to 65 digits. Readers know no such number, but text is exact."""
    assert canonical == json.loads(event({**INSERT, "data": {"id": 1, "n": number}}).after)["n"]
