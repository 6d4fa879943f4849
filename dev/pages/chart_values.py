"""Write the `config` part of the JSON Schemas for chart values, from the settings types.

`python -m dev.pages.chart_values` writes helm/*/values.schema.json, and a test compares the files with the types.
Everything else in these files is written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dev.pages.settings_reference import schema

CHARTS: Mapping[str, str] = {"translator": "translator", "spark-sink": "spark-sink"}
"""The folder of each program's chart in helm/."""

_HELM = Path(__file__).parents[2] / "helm"

# The prefix for definitions that come from the settings.
_PREFIX = "settings."

# A value that comes from the environment is text in the file, regardless of the setting's type.
_FROM_ENVIRONMENT = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}

_NOT_TEXT = frozenset({"integer", "number", "boolean"})
_CLOSED = frozenset({"pattern", "enum", "format", "const"})

# Helm does not support these keywords. The templates report missing values with an explanation.
_LEFT_OUT = frozenset({"title", "default", "minItems"})


def schemas() -> dict[Path, str]:
    """Return each file's content by its path."""
    return {_HELM / chart / "values.schema.json": _schema(chart, program) for program, chart in CHARTS.items()}


def _schema(chart: str, program: str) -> str:
    whole = json.loads((_HELM / chart / "values.schema.json").read_text(encoding="utf-8"))
    made = schema(program)
    by_hand = {name: found for name, found in whole["definitions"].items() if not name.startswith(_PREFIX)}
    settings = {f"{_PREFIX}{name}": _adapted(found) for name, found in made["$defs"].items()}
    file = {name: made[name] for name in ("type", "properties", "additionalProperties")}
    whole["properties"]["config"] = {
        "description": f"The configuration of the program, as in its file: docs/settings/{program}.md.",
        **_adapted(file),
    }
    whole["definitions"] = by_hand | settings
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _adapted(schema: Any) -> Any:
    """Return a schema for Helm: draft 7, with values that may come from the environment."""
    if isinstance(schema, list):
        return [_adapted(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: {key: _adapted(one) for key, one in value.items()} if name == "properties" else _adapted(value)
        for name, value in schema.items()
        if name not in _LEFT_OUT
    }
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace("#/$defs/", f"#/definitions/{_PREFIX}")}
    if found.get("type") in _NOT_TEXT or (found.get("type") == "string" and _CLOSED & found.keys()):
        return {"anyOf": [found, _FROM_ENVIRONMENT]}
    return found


def main() -> None:
    """Write the files."""
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
