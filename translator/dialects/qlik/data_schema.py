"""Store the text of an Avro schema: the parts that are needed to read data, and no text that could quote data.

A schema may contain more: defaults, documentation, and fields that the writer added. A writer's defaults are never
used. The text goes to the metadata topic. Any of these parts could contain column values, even masked ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from translator.dialects._avro_schema import LOGICAL_TYPES
from translator.dialects._json import check_distinct
from translator.errors import MessageError

_LOGICAL: Mapping[str, type] = {"logicalType": str, "precision": int, "scale": int}
_SCALARS: Mapping[str, type] = {"name": str, "namespace": str, "size": int, **_LOGICAL}
_NESTED = ("type", "items", "values")


def reading_part(text: str) -> str:
    """Return a schema without the parts that are not needed to read data. Returns "" for a schema that is not JSON and
    is therefore unusable.

    Other mistakes remain in the schema and are reported when it is used.
    """
    try:
        declared = msgspec.json.decode(text)
        check_distinct(text.encode(), declared)
        return msgspec.json.encode(_type(declared)).decode()
    except (msgspec.DecodeError, MessageError, RecursionError, UnicodeError):
        return ""


def _type(declared: Any) -> Any:
    if isinstance(declared, str):
        return declared
    if isinstance(declared, list):
        return [_type(branch) for branch in declared]
    if not isinstance(declared, dict):
        return None
    kept = _scalars(declared, _SCALARS)
    kept.update((name, _type(declared[name])) for name in _NESTED if name in declared)
    for name, part in (("fields", _field), ("symbols", _symbol)):
        if name in declared:
            listed = declared[name]
            kept[name] = [part(one) for one in listed] if isinstance(listed, list) else None
    return kept


def _field(declared: Any) -> Any:
    if not isinstance(declared, dict):
        return None
    kept = _scalars(declared, {"name": str, **_LOGICAL})
    if "type" in declared:
        kept["type"] = _type(declared["type"])
    return kept


def _symbol(declared: Any) -> Any:
    return declared if isinstance(declared, str) else None


def _scalars(declared: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the fields with these names. A field with a different type becomes null, which is also invalid."""
    kept = {
        name: declared[name] if type(declared[name]) is kind else None
        for name, kind in kinds.items()
        if name in declared
    }
    if kept.get("logicalType") not in LOGICAL_TYPES:
        kept.pop("logicalType", None)  # by Avro's rules, an unknown logical type has no meaning
    return kept
