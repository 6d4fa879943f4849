"""Create separate environments in build/ for tools that users do not need. The environments are installed from locks
with hashes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(group: str) -> Path:
    """Return the folder with the commands in a dependency group's environment, which is built from the current lock.

    Exits with a message if the packages are not available.
    """
    lock, environment = ROOT / f"requirements-{group}.lock", ROOT / "build" / f"{group}-env"
    stamp, wanted = environment / "stamp", hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
            subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{group}: the packages in {lock.name} could not be installed: {error}")
        stamp.write_text(wanted)
    return environment / "bin"
