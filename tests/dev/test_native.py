"""The build of the native path uses only the listed crates, and a missing cargo is not an error."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dev import native
from dev.native import checksums, differences

LOCK = """
[[package]]
name = "ours"
version = "0.1.0"

[[package]]
name = "ryu"
version = "1.0.20"
source = "a registry"
checksum = "aa"

[[package]]
name = "proc-macro2"
version = "1.0.9"
source = "a registry"
checksum = "bb"
"""
LIST = "bb  proc-macro2-1.0.9\naa  ryu-1.0.20\n"


def test_the_listed_crates_are_fine() -> None:
    assert [] == differences(LOCK, checksums(LIST))


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("bb  proc-macro2-1.0.9\n", "ryu-1.0.20 is not in the list"),
        (f"{LIST}cc  other-2.0.0\n", "other-2.0.0 of the list is not used"),
        (LIST.replace("aa", "dd"), "ryu-1.0.20 has another checksum"),
    ],
)
def test_any_other_crate_is_told(listed: str, said: str) -> None:
    assert [said] == differences(LOCK, checksums(listed))


def test_without_cargo_one_line_says_what_is_missing(tmp_path: Path) -> None:
    """Without cargo, one line explains cost and installation. Setup continues and removes an outdated extension."""
    stale = tmp_path / "rows.abi3.so"
    stale.touch()
    program = """
import pathlib, sys
from dev import native

native.BUILT = pathlib.Path(sys.argv[1])
sys.exit(native.main([]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, stale],
        cwd=native.ROOT,
        env={"PATH": str(tmp_path), "CDC_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    for part in ("not built", "processor time", "cargo was not found", "rustup", "make setup"):
        assert part in line
    assert not stale.exists()


def test_what_was_built_is_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "BUILT", tmp_path / "rows.abi3.so")

    def compile_(to: Path, texts: Path) -> None:
        to.write_bytes(b"compiled")
        texts.write_bytes(b"licenses")

    monkeypatch.setattr(native, "_compile", compile_)
    assert native.build().read_bytes() == b"compiled"
    monkeypatch.setattr(native, "_compile", lambda to, texts: pytest.fail("compiled again"))
    for path in (native.BUILT, tmp_path / native.LICENSES):
        path.write_bytes(b"of another state")
    assert native.build().read_bytes() == b"compiled"
    assert (tmp_path / native.LICENSES).read_bytes() == b"licenses"


def test_another_compiler_builds_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of another compiler is not taken from the cache, because its bytes can differ."""
    names = set()
    for version in ("1.90.0", "1.91.0"):
        compiler = tmp_path / version / "rustc"
        compiler.parent.mkdir()
        compiler.write_text(f"#!/bin/sh\necho rustc {version}\n")
        compiler.chmod(0o755)
        monkeypatch.setenv("PATH", str(compiler.parent))
        names.add(native._source_hash())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert 3 == len(names | {native._source_hash()})


def test_only_calls_of_c_are_unsafe() -> None:
    """The compiler rejects unsafe code in all modules that read messages. The crate pins exact versions."""
    crate = tomllib.loads((native.CRATE / "Cargo.toml").read_text())
    assert crate["lints"]["rust"]["unsafe_code"] == "deny"
    allowing = {file.name for file in (native.CRATE / "src").glob("*.rs") if "allow(unsafe_code)" in file.read_text()}
    assert {"librdkafka.rs", "producer_queue.rs"} == allowing
    wanted = [spec if isinstance(spec, str) else spec["version"] for spec in crate["dependencies"].values()]
    assert all(version.startswith("=") for version in wanted), json.dumps(wanted)
