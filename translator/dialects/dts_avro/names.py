"""Convert an objectName to the database, schema and table of the change (§6, Names)."""

from __future__ import annotations

from typing import NamedTuple

from translator.errors import ErrorCode, MessageError
from translator.message import TableName

_ESCAPED_DOT = "\\u002E"
_PATH = "$.objectName"


class ObjectName(NamedTuple):
    """The parts of an objectName: a table, or only the database (DDL), or nothing."""

    db: str | None
    table: TableName | None


def place(object_name: str | None) -> ObjectName:
    """Parse `db`, `db.table` or `db.schema.table`. A dot inside a name is escaped as six characters.

    Raises:
        MessageError: INVALID_FIELD for more than three parts, or an empty part.
    """
    if not object_name:
        return ObjectName(None, None)
    parts = [part.replace(_ESCAPED_DOT, ".") for part in object_name.split(".")]
    if not all(parts) or len(parts) > 3:
        reason = (
            f"objectName has {len(parts)} parts, including {parts.count('')} empty parts; expected 1 to 3 "
            "non-empty parts"
        )
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=_PATH)
    if len(parts) == 1:
        return ObjectName(parts[0], None)
    return ObjectName(parts[0], TableName(parts[0], parts[1] if len(parts) == 3 else None, parts[-1]))


def table_of_row(object_name: str | None) -> TableName:
    """Return a row's table.

    Raises:
        MessageError: TABLE_UNKNOWN if the name is missing or contains only a database.
    """
    table = place(object_name).table
    if table is None:
        what = "contains only a database name" if object_name else "is missing"
        raise MessageError(
            ErrorCode.TABLE_UNKNOWN, f"objectName {what}, but a row event requires a table name", path=_PATH
        )
    return table
