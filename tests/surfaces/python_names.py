"""The public names of a Python module as text: functions with their parameters, and classes with their parts."""

import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from types import FunctionType
from typing import Any, ForwardRef

import msgspec


def lines(name: str, what: Any, note: str = "") -> Iterator[str]:
    """Yield a line for a public name, followed by a line for each of its parts.

    Args:
        note: text for the end of the first line.
    """
    if isinstance(what, FunctionType):
        yield f"{name}{_parameters(what)}{note}"
        return
    yield f"{name}{note}"
    if not isinstance(what, type):
        return
    if isinstance(what, EnumMeta):
        yield from (f"    {member}" for member in what.__members__)
    elif isinstance(what, msgspec.StructMeta):
        yield from (f"    {line}" for line in fields(what))
    elif isinstance(vars(what).get("__init__"), FunctionType) and not getattr(what, "_is_protocol", False):
        yield f"    __init__{_parameters(what.__init__)}"
    else:
        yield from (f"    {attribute}: {declared}" for attribute, declared in inspect.get_annotations(what).items())
    for member, value in vars(what).items():
        if not member.startswith("_") and isinstance(value, FunctionType) and not isinstance(what, EnumMeta):
            yield f"    {member}{_parameters(value)}"
        elif isinstance(value, property) and not member.startswith("_"):
            yield f"    {member}"


def _parameters(function: FunctionType) -> str:
    """Return a function's parameters. A default that is a function appears with its name, and not with its address."""
    return re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", str(inspect.signature(function)))


def fields(struct: type[msgspec.Struct]) -> Iterator[str]:
    """Yield each field of a struct with its type."""
    for field in msgspec.structs.fields(struct):
        default = "" if field.required else " = …"
        yield f"{field.name}: {_type(struct, field.name)}{default}"


def keys(shape: type) -> Iterator[str]:
    """Yield each key of a TypedDict with its type."""
    for key, declared in inspect.get_annotations(shape).items():
        yield f"{key}: {declared.__forward_arg__ if isinstance(declared, ForwardRef) else declared}"


def _type(of: type, field: str) -> str:
    """Return the declared type, without the descriptions that msgspec adds to the envelope's schema."""
    declared = str(inspect.get_annotations(of)[field])
    return re.sub(r"^Annotated\[(.*?), .*\]$", r"\1", declared)
