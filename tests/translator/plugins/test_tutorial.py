"""The tutorial in docs/dialects/your-own.md works exactly as printed, in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.repository.pages import ROOT, page, section

TUTORIAL = section(page("dialects/your-own.md"), "Write a plug-in in an hour")
RETURN = "        return Changes([change])\n"

PIP = f"""#!/bin/sh
exec {sys.executable} -m pip --disable-pip-version-check --python @PYTHON@ "$@" --quiet --no-index --no-deps \
--no-build-isolation
"""
TRANSLATOR = f"""#!@PYTHON@
import sys
sys.path.insert(0, {str(ROOT)!r})
from translator.commands import main
main()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of an environment with the translator, whose `pip` uses no index."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    # A plain line adds the folder without running its .pth files.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    for name, text in {"pip": PIP, "translator": TRANSLATOR}.items():
        script = folder / "bin" / name
        script.write_text(text.replace("@PYTHON@", str(folder / "bin" / "python")))
        script.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def test_the_tutorial(tmp_path: Path, environment: dict[str, str]) -> None:
    """A new user runs the commands, writes the files and makes the changes. The output is the printed one."""
    output, outputs, case = "", "", tmp_path / "cdc-dialect-shop" / "cases" / "with_time.json"
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL):
        if language == "bash":
            command = ["bash", "-c", f"set -e\n{text}"]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            output = done.stdout
            outputs += output
            assert (0 if "failed  " not in output else 1) == done.returncode, output + done.stderr
        elif language == "json":
            case.write_text(text)
        elif language == "python":
            module = tmp_path / "cdc-dialect-shop" / "cdc_dialect_shop.py"
            module.write_text(module.read_text().replace(RETURN, text + RETURN))
        elif language == "text":
            assert text in output
        if "failed  " in text:  # the page then asks to delete the old result
            stored = case.read_text()
            assert '"expected"' in stored
            case.write_text(stored[: stored.index(',\n  "expected"')] + "\n}\n")
    assert '"ts_commit_us": 1700000000000000' in case.read_text()
    assert '"op":"c"' in outputs
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name.startswith("cdc_dialect_shop-0.1.0-")
    version = subprocess.run(
        ["translator", "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "dialect shop (cdc-dialect-shop 0.1.0)" in version.stdout
