"""Canal: `pkNames` that spells a key column differently than the rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from tests.translator.dialects.canal.messages import UPDATE, canal, message, row
from translator.message import Limits
from translator.translation.translate import Events, Translator


def inserted(columns: list[str], pk_names: list[str], **members: Any) -> dict[str, Any]:
    """Return an INSERT of a row with these columns."""
    types = dict.fromkeys(columns, "bigint(20)")
    data = [dict.fromkeys(columns, "7")]
    return {**UPDATE, "type": "INSERT", "old": None, "data": data, "mysqlType": types, "pkNames": pk_names, **members}


def event(body: dict[str, Any], *, plainly: bool = True, **options: Any) -> ChangeEvent:
    value = json.dumps(body, separators=None if plainly else (",", ":")).encode()
    result = Translator("s", canal(**options), Limits()).translate(message(value))
    assert isinstance(result, Events)
    return result.events[0]


@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize(
    ("columns", "pk_names", "key", "notes"),
    [
        (["Id", "a"], ["id"], '{"Id":7}', ["KEY_NAME_CASE=Id"]),
        (["ID", "a", "Ä"], ["ä", "id"], '{"Ä":7,"ID":7}', ["KEY_NAME_CASE=Ä", "KEY_NAME_CASE=ID"]),
        (["ID", "a"], ["ID", "A"], '{"ID":7,"a":7}', ["KEY_NAME_CASE=a"]),
        (["ID", "id"], ["id"], '{"id":7}', None),
        (["Id", "iD"], ["ID"], None, ["KEY_INCOMPLETE"]),
        (["ID", "a"], ["Id", "iD"], None, ["KEY_NAME_CASE=ID", "KEY_INCOMPLETE"]),
        (["id"], ["id", "ID"], None, ["KEY_INCOMPLETE"]),
        (["id"], ["i_d"], None, ["KEY_INCOMPLETE"]),
    ],
)
def test_the_case_of_a_key_column(
    plainly: bool, columns: list[str], pk_names: list[str], key: str | None, notes: list[str] | None
) -> None:
    """If exactly one column matches, it is used with a note. Several or none mean that there is no key, as always."""
    found = event(inserted(columns, pk_names), plainly=plainly)
    assert (key, notes) == (found.key, found.notes)
    assert "full" == found.after_state or key is None


def test_it_is_the_key_of_the_schema_too() -> None:
    """The schemas topic has the key under its name in the rows."""
    schema = row(inserted(["Id", "a"], ["ID"])).schema
    assert schema is not None
    assert (("Id",), "primary") == (schema.key_columns, schema.key_kind)


def test_every_operation() -> None:
    """The key of a row is the same in every operation, even without types."""
    old = {"Id": "7", "a": "1"}
    for type_, data, before in (("UPDATE", {"Id": "8", "a": "1"}, old), ("DELETE", old, None), ("INIT", old, None)):
        body = inserted([], ["ID"], type=type_, data=[data], old=before and [before], mysqlType=None)
        found = event(body, profile="dts")
        assert data["Id"] == json.loads(found.key or "{}")["Id"]
        assert ('{"Id":"7"}' if before else None) == found.key_old
    legacy = inserted(["Id"], ["ID"], type="DELETE", data=None, old=[old])
    assert '{"Id":7}' == event(legacy, profile="dts_legacy").key
