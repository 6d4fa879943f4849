"""Finds a Java that Spark and Kafka run on. `python -m dev.java` prints it; needs nothing but the standard library."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Spark 4.1 is tested on these two; Kafka 4 runs on both.
SUPPORTED = (17, 21)

# By the installer that this machine has; the first is also what a machine without any of them is told.
INSTALL_COMMANDS = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless",
    "dnf": "sudo dnf install java-17-openjdk-headless",
    "brew": "brew install openjdk@17",
}


class JavaError(Exception):
    """No Java that can be used; the message is one line and holds the command that installs one."""


@dataclass(frozen=True)
class Java:
    executable: Path
    version: int


def find_java() -> Java:
    """The Java of JAVA_HOME, else of PATH. A JAVA_HOME that does not serve is an error: somebody meant it."""
    home = os.environ.get("JAVA_HOME")
    if home:
        executable, origin = Path(home) / "bin" / "java", f"JAVA_HOME={home}"
        if not executable.is_file():
            raise JavaError(_complaint(f"{origin} holds no bin/java; unset it, or"))
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise JavaError(_complaint("none was found (JAVA_HOME is not set, PATH has no java);"))
        executable, origin = Path(on_path), on_path

    version = _version_of(executable)
    if version not in SUPPORTED:
        found = f"is Java {version}" if version else "does not tell its version"
        raise JavaError(_complaint(f"{origin} {found}; set JAVA_HOME to another, or"))
    return Java(executable, version)


def parse_version(banner: str) -> int | None:
    """The feature release out of what `java -version` prints: 17 of "17.0.15", 8 of "1.8.0_402", 21 of "21"."""
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(match[1]) if match else None


def _version_of(executable: Path) -> int | None:
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def _complaint(found: str) -> str:
    installer = next((name for name in INSTALL_COMMANDS if shutil.which(name)), "apt-get")
    return f"Java {' or '.join(map(str, SUPPORTED))} is needed: {found} install one: {INSTALL_COMMANDS[installer]}"


def main() -> int:
    try:
        java = find_java()
    except JavaError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    print(f"{java.executable} (Java {java.version})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
