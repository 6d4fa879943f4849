"""Print the entries of requirements.lock that the given groups need: `python dev/lock_part.py GROUP...`.

A group is `dependencies`, an extra from pyproject.toml, or one package. The lock contains every package from every
extra. PySpark alone is 400 MB that the translator never loads. Each image therefore installs only its part of the lock.
The lock's own "# via" lines show which packages need a given package. (The lock cannot serve as a constraints file,
because pip accepts no hashes there.)

This program needs only the standard library.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ENTRY = re.compile(r"^\w.*(?:\n .*)+", re.MULTILINE)
_VIA = re.compile(r"^ +# +(?:via +)?([\w.-]+)", re.MULTILINE)


def part_of_lock(lock: str, project: dict[str, Any], groups: Iterable[str]) -> list[str]:
    """Return the lock entries that the groups need.

    Raises:
        LookupError: a package in a group is not in the lock.
    """
    named = {"dependencies": project["dependencies"], **project.get("optional-dependencies", {})}
    wanted = {_name(requirement) for group in groups for requirement in named.get(group, [group])}
    # The entries are a list, because a package has several entries if its version depends on the Python version.
    entries = [(_name(entry), entry) for entry in _ENTRY.findall(lock)]
    strangers = sorted(wanted - {package for package, _ in entries})
    if strangers:
        raise LookupError(f"not in requirements.lock: {', '.join(strangers)}; run make lock")
    needed_by = [(package, {_name(other) for other in _VIA.findall(entry)}) for package, entry in entries]
    while more := {package for package, others in needed_by if others & wanted} - wanted:
        wanted |= more
    return [entry for package, entry in entries if package in wanted]


def _name(requirement: str) -> str:
    """Return a package's normalized name."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", match[0].lower()) if match else requirement


def main() -> None:
    """Run the command line."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = Path("requirements.lock").read_text(encoding="utf-8")
    try:
        print("\n".join(part_of_lock(lock, project, sys.argv[1:])))
    except LookupError as error:
        sys.exit(f"lock_part: {error}")


if __name__ == "__main__":
    main()
