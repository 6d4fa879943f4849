"""Every name of the interface and of the kit for dialects is described, and nothing else in them is public."""

from types import FunctionType, ModuleType
from typing import Any

import pytest

from translator import conformance, dialect_api


@pytest.mark.parametrize("module", [dialect_api, conformance])
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
