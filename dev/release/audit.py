"""Check both images for known vulnerabilities: `python -m dev.release.audit [OPTIONS OF PIP-AUDIT]`.

pip-audit checks the packages in the lock, and cargo-audit, if it is installed, the native path's crates. To check jars
and Debian packages, use the bills of materials (docs/releasing.md). If a package could not be checked, the audit fails.
An index without vulnerability data looks like one without vulnerabilities.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from dev.locked_environment import ROOT, commands
from dev.native import NativeError, locked_crate

# The pyproject.toml groups in the larger image. The smaller image has only the first of these groups.
GROUPS = ("dependencies", "sink")


def audit_packages(options: Sequence[str]) -> bool:
    """Return whether pip-audit checked every package in the lock and found nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as part:
        command = [sys.executable, "dev/lock_part.py", *GROUPS]
        part.write(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        part.flush()
        program = str(commands("audit") / "pip-audit")
        asked = [program, "--strict", "--disable-pip", "--require-hashes", "--progress-spinner=off", *options]
        return subprocess.run([*asked, "-r", part.name], check=False).returncode == 0


def audit_crates() -> bool:
    """Return whether cargo-audit is installed and found nothing."""
    program = shutil.which("cargo-audit")
    if program is None:
        print("audit: the crates were not checked: cargo install --locked cargo-audit", file=sys.stderr)
        return False
    try:
        with locked_crate() as crate:
            return subprocess.run([program, "audit"], cwd=crate, check=False).returncode == 0
    except NativeError as error:
        print(f"audit: the crates were not checked: {error}", file=sys.stderr)
        return False


def main() -> None:
    """Run both audits, even if the first one fails."""
    answers = {"packages": audit_packages(sys.argv[1:]), "crates": audit_crates()}
    for what, clean in answers.items():
        print(f"audit: {what}: {'nothing known' if clean else 'NOT CLEAN, or not asked'}")
    sys.exit(0 if all(answers.values()) else 1)


if __name__ == "__main__":
    main()
