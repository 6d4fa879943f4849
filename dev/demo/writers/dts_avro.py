"""Write DTS Avro, with one bare V3 datum per message. The union branch of a value shows its type."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import fastavro

from dev.demo.shop import Row, ShopChange
from dev.demo.writers import Raw, millis, partition_of
from translator.dialects.dts_avro.schema import V3

_DTS_TYPES = {
    "bigint": 8,
    "int": 3,
    "decimal": 246,
    "varchar": 253,
    "datetime": 12,
    "date": 10,
    "double": 5,
    "blob": 252,
}
_DTS = "com.alibaba.dts.formats.avro."


def _dts_date(value: date) -> dict[str, Any]:
    parts: dict[str, Any] = dict.fromkeys(("hour", "minute", "second", "millis"))
    return {"year": value.year, "month": value.month, "day": value.day} | parts


def _dts_datetime(value: datetime) -> dict[str, Any]:
    clock = {"hour": value.hour, "minute": value.minute, "second": value.second, "millis": value.microsecond}
    return _dts_date(value) | clock


_DTS_CELLS: Mapping[str, Callable[[Any], tuple[str, Any]]] = {
    "bigint": lambda value: ("Integer", {"precision": 8, "value": str(value)}),
    "int": lambda value: ("Integer", {"precision": 4, "value": str(value)}),
    "decimal": lambda value: ("Decimal", {"value": str(value), "precision": 14, "scale": 2}),
    "varchar": lambda value: ("Character", {"charset": "utf8mb4", "value": value.encode()}),
    "datetime": lambda value: ("DateTime", _dts_datetime(value)),
    "date": lambda value: ("DateTime", _dts_date(value)),
    "double": lambda value: ("Float", {"value": value, "precision": 0, "scale": 0}),
    "blob": lambda value: ("BinaryObject", {"type": "BLOB", "value": value}),
}


@dataclass
class DtsAvroWriter:
    """DTS records with schema V3 and MySQL as the source. `index` is the database index on the key columns."""

    topic: str
    database: str = "shop"
    index: str = "PRIMARY"
    _id: int = 0

    def write(self, change: ShopChange) -> Iterator[Raw]:
        """Return the record for a change. A structure change is written as a DDL record."""
        self._id += 1
        operations = {"load": "INIT", "insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "add_column": "DDL"}
        ddl = change.op == "add_column"
        sql = "ALTER TABLE customers ADD COLUMN phone varchar(100)"
        fields = [{"name": column.name, "dataTypeNumber": _DTS_TYPES[column.kind]} for column in change.table.columns]
        record = {
            "version": 0,
            "id": self._id,
            "sourceTimestamp": millis(change.at) // 1000,
            "sourcePosition": f"{self._id}@7",
            "source": {"sourceType": "MySQL", "version": "8.0.28"},
            "operation": operations[change.op],
            "objectName": self.database if ddl else f"{self.database}.{change.table.name}",
            "tags": {} if ddl else {"pk_uk_info": json.dumps({self.index: list(change.table.key)})},
            "fields": None if ddl else fields,
            "beforeImages": self._image(change, change.before),
            "afterImages": sql if ddl else self._image(change, change.after),
            "bornTimestamp": millis(change.at) // 1000,
        }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, V3, record)
        yield Raw(self.topic, partition_of(change.table), None, out.getvalue())

    @staticmethod
    def _image(change: ShopChange, row: Row | None) -> list[tuple[str, Any] | None] | None:
        if row is None:
            return None
        image: list[tuple[str, Any] | None] = []
        for column in change.table.columns:
            value = row[column.name]
            if value is None:
                image.append(None)
                continue
            branch, datum = _DTS_CELLS[column.kind](value)
            image.append((_DTS + branch, datum))
        return image
