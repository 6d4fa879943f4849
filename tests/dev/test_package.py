"""The wheel works without the rest of this project: installed, and run from another folder."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from dev.native import BUILT, CHECKSUMS, LICENSES, checksums
from dev.release.package import Packages, build, call_backend, copy_checkout

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "dev" / "demo" / "samples" / "canal.jsonl"
TRANSLATE = ("translate", "-d", "canal", "-o", "profile=oss", str(SAMPLES))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands folder of an environment with the wheel and our dependencies, but without our checkout."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(packages.wheel)], check=True)
    (own,) = folder.glob("lib/python3*/site-packages")
    # A plain line adds the folder without running its .pth files, so the editable checkout is not on the path.
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


def run(command: Path | str, *arguments: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_commands_run(installed: Path, tmp_path: Path) -> None:
    """Both programs run. The wheel includes the native path if this checkout has it."""
    assert "spark-sink run" in run(installed / "spark-sink", "run", "--help", folder=tmp_path)
    version = run(installed / "translator", "--version", folder=tmp_path)
    assert BUILT.is_file() == ("native" in version)
    where = run(installed / "python", "-c", "import translator; print(translator.__file__)", folder=tmp_path)
    assert Path(where).is_relative_to(installed.parent)


def test_it_translates_as_the_checkout_does(installed: Path, tmp_path: Path) -> None:
    """It writes the same bytes, which requires the package's data files."""
    ours = run(Path(sys.executable).with_name("translator"), *TRANSLATE, folder=tmp_path)
    assert ours
    assert ours == run(installed / "translator", *TRANSLATE, folder=tmp_path)


def test_every_file_of_the_packages_is_in_it(packages: Packages) -> None:
    """The wheel has every file except compiled sources. It is built from the sdist, so the sdist has the files too."""
    listed = subprocess.run(
        ["git", "ls-files", "cdc_core", "translator", "spark_sink"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {name for name in listed.stdout.split() if not name.endswith((".rs", ".toml", ".java"))}
    assert set() == wanted - set(zipfile.ZipFile(packages.wheel).namelist())


def test_the_sdist_has_every_source(packages: Packages) -> None:
    """A wheel that somebody builds from it is the same, with the native path and the sink's jar."""
    listed = subprocess.run(
        ["git", "ls-files", "translator/_native", "spark_sink/_java", "dev/crates.sha256", "dev/jars.xml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(packages.source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert set() == set(listed.stdout.split()) - names


def test_the_same_source_gives_the_same_packages(packages: Packages, tmp_path: Path) -> None:
    """Two builds of the same source are identical, byte for byte. `make release-check` also compiles the native path
    twice.
    """
    for first, second in zip(packages, build(tmp_path), strict=True):
        assert first.name == second.name
        assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()


@pytest.mark.skipif(not BUILT.is_file() or platform.libc_ver()[0] != "glibc", reason="no extension for glibc")
def test_an_index_accepts_its_name(packages: Packages) -> None:
    """The name has the glibc that the extension needs, which is not newer than that of this machine."""
    found = re.fullmatch(r"cdc_translator-[0-9.]+-cp311-abi3-manylinux_2_(\d+)_\w+\.whl", packages.wheel.name)
    assert found is not None, packages.wheel.name
    needed, own = int(found[1]), int(platform.libc_ver()[1].split(".")[1])
    assert needed <= own
    extension = zipfile.ZipFile(packages.wheel).read(str(BUILT.relative_to(ROOT)))
    assert f"GLIBC_2.{needed}".encode() in extension


@pytest.mark.skipif(not BUILT.is_file(), reason="the native path is not built")
def test_no_path_of_this_machine(packages: Packages) -> None:
    """The extension names places in its crates, but not the folder of this user, so every machine builds the same."""
    extension = zipfile.ZipFile(packages.wheel).read(str(BUILT.relative_to(ROOT)))
    assert b"crates/pyo3-" in extension
    for folder in (Path.home(), ROOT, os.environ.get("CARGO_HOME", Path.home())):
        assert f"{folder}/".encode() not in extension


@pytest.mark.parametrize("compiler", [True, False], ids=["cargo", "no cargo"])
def test_pip_builds_the_native_path(compiler: bool, tmp_path: Path) -> None:
    """`pip install .` calls the same hook. Without cargo, the result is a wheel for every platform."""
    copy_checkout(tmp_path / "checkout", ["."])
    environment = dict(os.environ)
    if not compiler:
        environment |= {"PATH": "/nonexistent", "CDC_CACHE": str(tmp_path / "cache")}
    name = call_backend("build_wheel", tmp_path / "checkout", tmp_path / "wheels", environment)
    native = BUILT.is_file() and compiler
    assert native == name.startswith("cdc_translator-0.1.0-cp311-abi3-")
    assert native == (not name.endswith("-py3-none-any.whl"))
    files = zipfile.ZipFile(tmp_path / "wheels" / name).namelist()
    for path in (BUILT, BUILT.with_name(LICENSES)):
        assert native == (str(path.relative_to(ROOT)) in files)


@pytest.mark.skipif(not BUILT.is_file(), reason="the native path is not built")
def test_licenses() -> None:
    """The licenses of all crates in the native path are distributed with it."""
    text = BUILT.with_name(LICENSES).read_text(encoding="utf-8")
    listed = re.findall(r"^([a-z0-9_-]+) ([0-9.]+): \S", text, re.MULTILINE)
    assert [f"{name}-{version}" for name, version in listed] == [*checksums(CHECKSUMS.read_text())]
    assert text.count("Permission is hereby granted, free of charge") > 15


def test_a_build_that_must_have_the_native_path_fails_without_cargo(tmp_path: Path) -> None:
    copy_checkout(tmp_path / "checkout", ["."])
    environment = {"PATH": "/nonexistent", "CDC_CACHE": str(tmp_path / "cache"), "CDC_NATIVE": "must"}
    with pytest.raises(SystemExit, match="CDC_NATIVE=must: the native path was not built"):
        call_backend("build_wheel", tmp_path / "checkout", tmp_path / "wheels", {**os.environ, **environment})
    assert [] == [*(tmp_path / "wheels").iterdir()]
