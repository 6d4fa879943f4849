"""Write the reference pages and JSON Schemas of both configuration files from the types of the settings.

`python -m dev.pages.settings_reference` writes docs/settings/, and a test compares the files with the types.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, SecretStr
from pydantic.fields import FieldInfo

import spark_sink.config.settings
import translator.config.settings

FOLDER = Path(__file__).parents[2] / "docs" / "settings"

PROGRAMS: Mapping[str, tuple[type[BaseModel], str]] = {
    "translator": (translator.config.settings.Settings, "translator run -c translator.yaml"),
    "spark-sink": (spark_sink.config.settings.Settings, "spark-sink run -c sink.yaml"),
}

_PAGE = """# Settings of {program}

This page lists all settings in the file of `{command}`. An unknown name is an error, which suggests the closest
known name. `${{NAME}}` in a value is replaced from the environment. `python -m dev.pages.settings_reference` generates
this page from the types.

Editors can complete and check the file with [{program}.schema.json]({program}.schema.json). For the YAML language
server, add this as the first line of the file:
`# yaml-language-server: $schema=<path or address of {program}.schema.json>`.
"""

_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "file",
    SecretStr: "secret text",
    AwareDatetime: "time with its offset (ISO 8601)",
    Any: "any value",
}


def pages() -> dict[str, str]:
    """Return the content of each file by its name in docs/settings/."""
    found = {}
    for program, (model, command) in PROGRAMS.items():
        parts = [_PAGE.format(program=program, command=command), *_sections(model, "")]
        found[f"{program}.md"] = "\n".join(parts)
        found[f"{program}.schema.json"] = json.dumps(schema(program), indent=2, ensure_ascii=False) + "\n"
    return found


def schema(program: str) -> dict[str, Any]:
    """Return the JSON Schema of a program's file."""
    model, command = PROGRAMS[program]
    made = model.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": f"The file of {command}"}


def _sections(model: type[BaseModel], path: str) -> Iterator[str]:
    """Yield the table of a section, then those of its subsections."""
    summary = (model.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
    yield f"## {path or 'The file'}\n\n{summary}\n"
    rows = [_row(name, field) for name, field in model.model_fields.items()]
    yield "\n".join(("| setting | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""))
    for name, field in model.model_fields.items():
        for inner, mark in _models(field.annotation):
            yield from _sections(inner, f"{path}.{name}{mark}".lstrip("."))


def _row(name: str, field: FieldInfo) -> str:
    inner = next((model for model, _ in _models(field.annotation)), None)
    meaning = field.description or (inner.__doc__ or "").strip().split("\n")[0] if inner else field.description
    if not meaning:
        raise ValueError(f"the setting {name} has no description")
    value = "section" if inner and not _repeats(field.annotation) else "list of sections" if inner else _value(field)
    cells = (f"`{name}`", value, _default(field, inner), meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo, inner: type[BaseModel] | None) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is None or default in ((), {}) or inner is not None:
        return ""
    plain = default.value if isinstance(default, Enum) else default
    return f"`{json.dumps(plain, default=str)}`" if not isinstance(plain, str) else f"`{plain}`"


def _models(annotation: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Yield the sections in an annotation, with `[]` if there can be several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, ""
        return
    mark = "[]" if get_origin(annotation) is tuple else ""
    for argument in get_args(annotation):
        yield from ((model, mark + deeper) for model, deeper in _models(argument))


def _repeats(annotation: Any) -> bool:
    return any(mark for _, mark in _models(annotation))


def _value(field: FieldInfo) -> str:
    bounds = [_bound(item) for item in field.metadata]
    return ", ".join([_type(field.annotation), *filter(None, bounds)])


def _bound(item: Any) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return next((f"{word} {getattr(item, name)}" for name, word in words.items() if hasattr(item, name)), "")


def _type(annotation: Any) -> str:
    """Describe a type in words."""
    if annotation in _WORDS:
        return _WORDS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _WORDS.get(annotation, "") or _type(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments if argument is not types.NoneType)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"map from {_type(arguments[0])} to {_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    raise ValueError(f"no words for the type {annotation!r}")


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
