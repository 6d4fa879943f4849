"""Canal flat messages. Every value is text or null."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from dev.demo.shop import Row, ShopChange
from dev.demo.writers import Raw, iso, millis, partition_of, to_json

COLUMN_TYPES = {
    "bigint": "bigint(20)",
    "int": "int(11)",
    "decimal": "decimal(14,2)",
    "varchar": "varchar(100)",
    "datetime": "datetime(6)",
    "date": "date",
    "double": "double",
    "blob": "varbinary(16)",
}


def _canal_cell(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float):
        return repr(value)
    return iso(value, " ") if isinstance(value, date) else str(value)


@dataclass(frozen=True)
class CanalForm:
    """How Canal writers differ: the type for a full load and for DDL, and the images of an update.

    `legacy` is a DTS instance from before March 2022. Its images are swapped, and it omits fields that other writers
    set to null (docs/formats/canal.md §6.1).
    """

    load: str = "INSERT"
    ddl: str = "ALTER"
    full_old: bool = False
    legacy: bool = False


OSS = CanalForm()
FULL_OLD = CanalForm(full_old=True)
DTS = CanalForm("INIT", "DDL")
DTS_FULL = CanalForm("INIT", "DDL", full_old=True)
DTS_LEGACY = CanalForm("INIT", "DDL", full_old=True, legacy=True)


@dataclass
class CanalWriter:
    """Canal flat messages."""

    topic: str
    form: CanalForm = OSS
    database: str = "shop"
    _id: int = 0

    def write(self, change: ShopChange, sent: datetime | None = None) -> Iterator[Raw]:
        """Return the messages for a change. Unless `sent` is given, the messages are sent half a second later."""
        self._id += 1
        form = self.form
        message = self._envelope(change, sent or change.at + timedelta(milliseconds=500))
        images = {name: row and {k: _canal_cell(v) for k, v in row.items()} for name, row in _images(change)}
        before, after = images["before"], images["after"]
        if change.op == "add_column":
            sql = "ALTER TABLE `customers` ADD COLUMN `phone` varchar(100)"
            message |= {"type": form.ddl, "isDdl": True, "sql": sql}
        elif change.op == "update" and form.full_old:
            data, old = (before, after) if form.legacy else (after, before)
            message |= {"type": "UPDATE", "data": [data], "old": [old]}
        elif change.op == "update":
            old = {name: value for name, value in (before or {}).items() if value != (after or {})[name]}
            message |= {"type": "UPDATE", "data": [after], "old": [old]}
        elif change.op == "delete":
            message |= {"type": "DELETE", "old" if form.legacy else "data": [before]}
        else:
            message |= {"type": form.load if change.op == "load" else "INSERT", "data": [after]}
        yield Raw(self.topic, partition_of(change.table), None, to_json(message))

    def _envelope(self, change: ShopChange, sent: datetime) -> dict[str, Any]:
        message = {
            "database": self.database,
            "table": change.table.name,
            "es": millis(change.at) // 1000 * 1000,
            "ts": millis(sent),
            "id": self._id,
            "isDdl": False,
            "sql": "",
        }
        if change.op == "add_column":
            return message
        types = {column.name: COLUMN_TYPES[column.kind] for column in change.table.columns}
        message |= {"mysqlType": types, "sqlType": None, "pkNames": list(change.table.key)}
        return message if self.form.legacy else {"data": None, "old": None} | message


def _images(change: ShopChange) -> tuple[tuple[str, Row | None], tuple[str, Row | None]]:
    return ("before", change.before), ("after", change.after)
