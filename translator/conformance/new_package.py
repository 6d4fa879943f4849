"""The files of a new plug-in. The plug-in already works (`translator dialect new`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from translator.dialects import DIALECTS
from translator.errors import ConfigError, FatalError

_NAME = re.compile(r"[a-z]([a-z0-9_]{0,38}[a-z0-9])?", re.ASCII)
"""A dialect's name. It cannot end in an underscore, because distribution names cannot."""

_TEMPLATE = Path(__file__).with_name("template")

_FILES: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    "cdc_dialect_@NAME@.py": "dialect.py.txt",
    "cases/insert.json": "insert.json",
    "cases/key_change.json": "key_change.json",
    "cases/rejected.json": "rejected.json",
    "tests/test_conformance.py": "test_conformance.py.txt",
}
"""The files of a plug-in, each with its template. `@NAME@` is replaced by the name of the dialect. Because of the
prefix, no dialect gets the name of the translator's own distribution (`cdc-translator`) or modules (`cdc_core`).
"""


def create(name: str, into: Path) -> Path:
    """Write a new plug-in, and return its folder.

    Raises:
        ConfigError: the name is not allowed or belongs to a built-in dialect, or the folder already exists.
        FatalError: a file cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a dialect; expected a lower-case letter, followed by up to 39 lower-case "
            "letters, digits and underscores, without an underscore at the end"
        )
    if name in DIALECTS:
        raise ConfigError(f"dialect {name} is built in, and a plug-in cannot replace it; choose another name")
    folder = into / f"cdc-dialect-{name}"
    try:
        folder.mkdir(parents=True)
        for file, template in _FILES.items():
            path = folder / file.replace("@NAME@", name)
            path.parent.mkdir(exist_ok=True)
            text = (_TEMPLATE / template).read_text(encoding="utf-8")
            path.write_text(text.replace("@NAME@", name), encoding="utf-8")
    except FileExistsError:
        raise ConfigError(f"{folder} already exists and was not changed; choose another name or folder") from None
    except OSError as error:
        raise FatalError(f"cannot write {folder}: {error.strerror}") from None
    return folder
