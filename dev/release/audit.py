"""`python -m dev.release.audit [OPTIONS OF PIP-AUDIT]`: known vulnerabilities of what both images are made of.

pip-audit asks about the packages of the lock, cargo-audit, where it is installed, about the crates of the native path;
jars and Debian's packages are asked about with the bills of materials (docs/releasing.md). A package that could not be
asked about is a failure: an index that knows of no vulnerabilities gives the same silence as one without any.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from dev.locked_environment import ROOT, commands
from dev.native import NativeError, locked_crate

# The groups of pyproject.toml of the larger image; the smaller one has the first of them.
GROUPS = ("dependencies", "sink")


def audit_packages(options: Sequence[str]) -> bool:
    """Say whether pip-audit could ask about every package of the lock, and found nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as part:
        command = [sys.executable, "dev/lock_part.py", *GROUPS]
        part.write(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        part.flush()
        program = str(commands("audit") / "pip-audit")
        asked = [program, "--strict", "--disable-pip", "--require-hashes", "--progress-spinner=off", *options]
        return subprocess.run([*asked, "-r", part.name], check=False).returncode == 0


def audit_crates() -> bool:
    """Say whether cargo-audit was there, and found nothing."""
    program = shutil.which("cargo-audit")
    if program is None:
        print("audit: the crates were not asked about: cargo install --locked cargo-audit", file=sys.stderr)
        return False
    try:
        with locked_crate() as crate:
            return subprocess.run([program, "audit"], cwd=crate, check=False).returncode == 0
    except NativeError as error:
        print(f"audit: the crates were not asked about: {error}", file=sys.stderr)
        return False


def main() -> None:
    """Ask both, whatever the first one says."""
    answers = {"packages": audit_packages(sys.argv[1:]), "crates": audit_crates()}
    for what, clean in answers.items():
        print(f"audit: {what}: {'nothing known' if clean else 'NOT CLEAN, or not asked'}")
    sys.exit(0 if all(answers.values()) else 1)


if __name__ == "__main__":
    main()
