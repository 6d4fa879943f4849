"""An environment of its own for a tool that no user of the programs needs: in build, from a lock, by hash."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(group: str) -> Path:
    """Return the folder of commands of the environment of a dependency group, made from its present lock.

    Ends the program with a sentence where the packages cannot be had.
    """
    lock, environment = ROOT / f"requirements-{group}.lock", ROOT / "build" / f"{group}-env"
    stamp, wanted = environment / "stamp", hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
            subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{group}: the parts of {lock.name} cannot be installed: {error}")
        stamp.write_text(wanted)
    return environment / "bin"
