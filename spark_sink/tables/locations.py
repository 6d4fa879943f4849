"""Table folders in a warehouse."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.fs as fs
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler


def location(warehouse: str, name: str) -> str:
    """Return a table's folder. Each dot in the name separates folders."""
    return f"{warehouse.rstrip('/')}/{name.replace('.', '/')}"


def is_present(warehouse: str, name: str) -> bool:
    """Return whether a table's folder exists."""
    folder = fs.PyFileSystem(DeltaStorageHandler(warehouse)).get_file_info(name.replace(".", "/"))
    return bool(folder.type == fs.FileType.Directory)


def spelled(warehouse: str, name: str, is_table: Callable[[str], bool]) -> str | None:
    """Return the table's actual name, ignoring case, or None.

    Args:
        is_table: returns whether a folder is a table.
    """
    try:
        storage = fs.PyFileSystem(DeltaStorageHandler(warehouse))
    except TableNotFoundError:  # the warehouse does not exist yet
        return None
    found = [""]
    for folder in name.split("."):
        found = [
            child
            for parent in found
            for child in _children(storage, parent)
            if child.rpartition("/")[2].lower() == folder.lower()
        ]
    names = (path.replace("/", ".") for path in sorted(found))
    tables = [one for one in names if is_table(location(warehouse, one))]
    return name if name in tables else next(iter(tables), None)


def _children(storage: fs.FileSystem, folder: str) -> list[str]:
    """Return the paths in a warehouse folder. If the folder does not exist, the result is empty."""
    found = storage.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return [info.path for info in found]
