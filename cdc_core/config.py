"""Read a YAML file into a program's typed settings, with `${NAME}` for values from the environment.

Errors give the location but quote nothing from the file, because the text might be a secret. The reader follows two
rules of YAML 1.2. Only `true` and `false` are booleans, so a column can be named NO, and a mapping may contain each key
only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from cdc_core.config_mistakes import Places, SettingsFile, mistakes, refused
from cdc_core.errors import ConfigError, quote

Model = TypeVar("Model", bound=BaseModel)

FILE = "file"
"""The name under which a model's validators find the `SettingsFile` in their context."""


def load(model: type[Model], path: Path, environment: Mapping[str, str]) -> Model:
    """Load the settings from a YAML file.

    Raises:
        ConfigError: the file cannot be read, a variable is not set, or the content is invalid. One error lists all
            mistakes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: byte {error.start} is not valid UTF-8") from None
    return parse(model, text, environment, str(path))


def parse(model: type[Model], text: str, environment: Mapping[str, str], where: str) -> Model:
    """Load the settings from YAML text. `where` identifies the text in errors."""
    try:
        document, places = _document(text, where)
        given = _interpolate(document, environment, where)
    except RecursionError:
        raise ConfigError(f"{where}: the file is nested too deeply, or an alias refers to itself") from None
    try:
        return model.model_validate(given, context={FILE: SettingsFile(where, places)})
    except ValidationError as error:
        raise refused(where, mistakes(error, model, places)) from None


# -- YAML

_TAG = "tag:yaml.org,2002:"
_BOOLEAN, _MERGE = f"{_TAG}bool", f"{_TAG}merge"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2 booleans. The only exception that it raises is YAMLError."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own declaration
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOLEAN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, ArithmeticError):
            # PyYAML's constructors do not wrap the errors that Python raises for `2026-02-31` or `!!int x`.
            kind = node.tag.removeprefix(_TAG)
            raise yaml.constructor.ConstructorError(None, None, f"not a valid {kind}", node.start_mark) from None


_Loader.add_implicit_resolver(_BOOLEAN, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))


def _document(text: str, where: str) -> tuple[dict[Any, Any], Places]:
    """Return the content of a file, and the locations of its items."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if repeated := list(_repeated(root, set())):
            raise refused(where, repeated)
        document = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{where}: not YAML: {_problem(error)}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{where}: not YAML: it contains a character that YAML does not allow") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: the file must contain a mapping at the top level")
    return document, Places(root)


def _repeated(node: yaml.Node | None, seen: set[int]) -> Iterator[str]:
    """Yield an error for every repeated key in a mapping. A key from a merged mapping (`<<`) can be overridden."""
    if node is None or id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(id(node))  # an alias refers to a node that was already checked
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, seen)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            line = key.start_mark.line + 1
            if key.value in lines:
                yield f"line {line}: duplicate key {quote(key.value)}, first used on line {lines[key.value]}"
            lines.setdefault(key.value, line)
        yield from _repeated(value, seen)


# Quoted parts of PyYAML's messages that do not come from the file, which are token names and expected characters.
_QUOTED = re.compile(r"""('<[a-z ]+>'|'[][{}:,?. >!-]'|'\\t')|(['"]).*\2""")


def _problem(error: yaml.MarkedYAMLError) -> str:
    """Return the problem and its location, but not the text that PyYAML quotes from the file."""
    said = _without_quotes(error.problem or "the file cannot be read")
    mark, begun = error.problem_mark, error.context_mark
    if begun is not None and mark is not None and begun.line != mark.line:
        said = f"{_without_quotes(error.context or '')} that begins in line {begun.line + 1}: {said}"
    return f"{said} (line {mark.line + 1}, column {mark.column + 1})" if mark else said


def _without_quotes(said: str) -> str:
    return _QUOTED.sub(lambda found: found[1] or "…", said)


# -- variables

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _interpolate(node: Any, environment: Mapping[str, str], where: str) -> Any:
    """Replace `${NAME}` in strings after parsing, so that a value can never change the structure of the file."""
    if isinstance(node, dict):
        return {name: _interpolate(value, environment, where) for name, value in node.items()}
    if isinstance(node, list):
        return [_interpolate(value, environment, where) for value in node]
    if not isinstance(node, str):
        return node

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ConfigError(f"{where}: environment variable {match[1]} is not set")
        return environment[match[1]]

    return _VARIABLE.sub(value_of, node)
