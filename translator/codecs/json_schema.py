"""Write the JSON Schema for JSON events, for consumers that validate what they receive.

`python -m translator.codecs.json_schema` prints this schema. docs/envelope.schema.json contains the output. It is
derived from the Avro schema, so the fields are listed only once. Like version 1 itself, the JSON Schema allows
additional fields and values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_core.envelope import KEY_KINDS, KINDS, OPERATIONS, STATES, VARIANT_BASES, VERSION, avro_schema
from cdc_core.wire_format import IMAGES

Node = dict[str, Any]

_SCALARS: Mapping[str, Node] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "long": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
}

_IMAGE: Node = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}

_WORDS: Mapping[str, Sequence[str]] = {
    "kind": KINDS,
    "op": OPERATIONS,
    "key_kind": KEY_KINDS,
    "before_state": STATES,
    "after_state": STATES,
    "variant_basis": VARIANT_BASES,
}
"""The values that this release writes. They are examples rather than an `enum`, because later releases may add values.
"""


def json_schema() -> Node:
    """Return the schema for a value. Nullable fields can be missing."""
    record = avro_schema(logical=False)
    for field in record["fields"]:
        if field["name"] in IMAGES:
            field["type"] = ["null", "image"]
    schema = _record(record)
    properties = schema["properties"]
    properties["v"]["const"] = VERSION
    for name, words in _WORDS.items():
        properties[name]["examples"] = list(words)
    title = f"Change event, version {VERSION}, JSON form"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _record(avro: Node) -> Node:
    return {
        "type": "object",
        "required": [field["name"] for field in avro["fields"] if not isinstance(field["type"], list)],
        "properties": {field["name"]: _field(field) for field in avro["fields"]},
    }


def _field(avro: Node) -> Node:
    described = {"description": avro["doc"]} if "doc" in avro else {}
    if isinstance(avro["type"], list):
        null, other = avro["type"]
        return {**described, "anyOf": [{"type": null}, _value(other)]}
    return {**described, **_value(avro["type"])}


def _value(avro: Any) -> Node:
    if avro == "image":
        return _IMAGE
    if isinstance(avro, str):
        return _SCALARS[avro]
    if avro["type"] == "record":
        return _record(avro)
    if avro["type"] == "array":
        return {"type": "array", "items": _value(avro["items"])}
    return {"type": "object", "additionalProperties": _value(avro["values"])}


def json_schema_text() -> str:
    """Return the content of docs/envelope.schema.json."""
    return json.dumps(json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema_text())
