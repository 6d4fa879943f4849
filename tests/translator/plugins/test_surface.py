"""The public interface and kit for dialects, compared with a stored text, because plug-ins depend on every part of it.

An intended addition changes surface.txt: `python -m tests.translator.plugins.test_surface` writes the file. Removing or
changing a line breaks plug-ins, and needs another version of the interface.
"""

import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from translator import conformance, dialect_api

MODULES = (dialect_api, conformance)
FILE = Path(__file__).with_name("surface.txt")


def surface() -> str:
    """Return one line for each public name, followed by a line for each of its parts."""
    return "".join(f"{line}\n" for module in MODULES for name in module.SINCE for line in _lines(module, name))


def _lines(module: ModuleType, name: str) -> Iterator[str]:
    what, since = getattr(module, name), module.SINCE[name]
    if isinstance(what, FunctionType):
        yield f"{name}{inspect.signature(what)}  since {since}"
        return
    yield f"{name}  since {since}"
    if isinstance(what, EnumMeta):
        yield from (f"    {member}" for member in what.__members__)
    elif isinstance(what, msgspec.StructMeta):
        for field in msgspec.structs.fields(what):
            default = "" if field.required else " = …"
            yield f"    {field.name}: {_type(what, field.name)}{default}"
    elif issubclass(what, Exception) and "__init__" in vars(what):
        yield f"    __init__{inspect.signature(what.__init__)}"
    else:
        yield from (f"    {attribute}: {declared}" for attribute, declared in inspect.get_annotations(what).items())
    for member, value in vars(what).items():
        if not member.startswith("_") and isinstance(value, FunctionType) and not isinstance(what, EnumMeta):
            yield f"    {member}{inspect.signature(value)}"
        elif isinstance(value, property):
            yield f"    {member}"


def _type(of: type, field: str) -> str:
    """Return the declared type, without the descriptions that msgspec adds to the envelope's schema."""
    declared = str(inspect.get_annotations(of)[field])
    return re.sub(r"^Annotated\[(.*?), .*\]$", r"\1", declared)


def test_the_surface_is_the_stored_text() -> None:
    assert FILE.read_text(encoding="utf-8") == surface()


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_described(module: ModuleType) -> None:
    """Nothing else is public, and each name has a docstring of its own."""
    public = {
        name for name, value in vars(module).items() if not (name.startswith("_") or isinstance(value, ModuleType))
    }
    assert public - {"annotations", "Mapping"} == {"SINCE", *module.SINCE}
    assert [] == [name for name in module.SINCE if not (vars_of(module, name).get("__doc__") or "").strip()]


def vars_of(module: ModuleType, name: str) -> dict[str, Any]:
    what = getattr(module, name)
    return {"__doc__": what.__doc__} if isinstance(what, FunctionType) else dict(vars(what))


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
