"""The public interface for dialects, compared with a stored text, because plug-ins depend on every part of it.

An intended addition changes surface.txt: `python -m tests.translator.plugins.test_surface` writes the file. Removing or
changing a line breaks plug-ins, and needs another version of the interface.
"""

import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from types import FunctionType

import msgspec

from translator import dialect_api

FILE = Path(__file__).with_name("surface.txt")


def surface() -> str:
    """Return one line for each public name, followed by a line for each of its parts."""
    return "".join(f"{line}\n" for name in dialect_api.SINCE for line in _lines(name))


def _lines(name: str) -> Iterator[str]:
    what = getattr(dialect_api, name)
    if isinstance(what, FunctionType):
        yield f"{name}{inspect.signature(what)}  since {dialect_api.SINCE[name]}"
        return
    yield f"{name}  since {dialect_api.SINCE[name]}"
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


def _type(of: type, field: str) -> str:
    """Return the declared type, without the descriptions that msgspec adds to the envelope's schema."""
    declared = str(inspect.get_annotations(of)[field])
    return re.sub(r"^Annotated\[(.*?), .*\]$", r"\1", declared)


def test_the_surface_is_the_stored_text() -> None:
    assert FILE.read_text(encoding="utf-8") == surface()


def test_every_name_is_described() -> None:
    """Nothing else is public, and each name has a docstring of its own."""
    public = {name for name in vars(dialect_api) if not name.startswith("_")}
    assert public - {"annotations", "Mapping"} == {"SINCE", *dialect_api.SINCE}
    assert [] == [name for name in dialect_api.SINCE if not (vars_of(name).get("__doc__") or "").strip()]


def vars_of(name: str) -> dict[str, object]:
    what = getattr(dialect_api, name)
    return {"__doc__": what.__doc__} if isinstance(what, FunctionType) else dict(vars(what))


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
