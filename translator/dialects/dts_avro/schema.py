"""The DTS record schema (§1), stored in `record.v3.avsc`.

Version 3 is version 2 plus the last field. Version 1 has shorter lists in two enums and one union. The reader accepts
that the last field is missing, so this schema works for all three versions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro

LAST_FIELD_OF_V3 = "bornTimestamp"
NAMESPACE = "com.alibaba.dts.formats.avro"

_RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("record.v3.avsc").read_text(encoding="utf-8"))
_FIELDS_OF_V2 = [field for field in _RECORD["fields"] if field["name"] != LAST_FIELD_OF_V3]

V3 = fastavro.parse_schema(_RECORD)
V2 = fastavro.parse_schema({**_RECORD, "fields": _FIELDS_OF_V2})


def _symbols(type_: dict[str, Any]) -> tuple[str, ...]:
    return tuple(type_["symbols"])


_TYPES = {field["name"]: field["type"] for field in _RECORD["fields"]}
SOURCE_TYPES = _symbols(_TYPES["source"]["fields"][0]["type"])
OPERATIONS = _symbols(_TYPES["operation"])
