"""Stop a program at the worst moments of its imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

MOMENTS = {"in a class that is being made": "type('Made', (), {'told': Told()})", "in a finalizer": "Dropped()"}

_SCRIPT = """
import os, signal, sys
from {program}.commands import main

class Told:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGTERM)

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

class Finder:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            {when}

sys.meta_path.insert(0, Finder())
sys.argv = [{program!r}, "run", "-c", {config!r}]
main()
"""


def stopped_while_it_imports(
    directory: Path, program: str, settings: Mapping[str, Any], module: str, moment: str
) -> subprocess.CompletedProcess[str]:
    """Run `PROGRAM run` and send it SIGTERM when it imports `module`."""
    config = directory / "config.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    script = _SCRIPT.format(program=program, module=module, when=MOMENTS[moment], config=str(config))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=False)
