"""Build the native path (`translator/_native`), or check its source: `python -m dev.native [--must | --check]`.

The build uses nothing but the crates in dev/crates.sha256, in exact versions whose checksums cargo verifies. (A
Cargo.lock has the same content and a registry address, which differs between machines.) The result is stored in the
user's cache under the hash of its source and compiler, so that the next checkout reuses the result.

The extension is optional. If the native path cannot be built, the command prints one line with the reason, the
consequence and the remedy. The exit code is 0, or 1 with `--must`. `--check` runs rustfmt and clippy if they are
installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dev.jars import cache, only_one

ROOT = Path(__file__).parents[1]
CRATE = ROOT / "translator" / "_native"
BUILT = CRATE / "rows.abi3.so"
LICENSES = "LICENSES.txt"
"""A file with the licenses of the extension's crates. It is next to the extension, and must be distributed with it."""
CHECKSUMS = ROOT / "dev" / "crates.sha256"
SOURCES = (CRATE / "Cargo.toml", CRATE / "rustfmt.toml", CHECKSUMS, *sorted((CRATE / "src").glob("*.rs")))

LIBRARY = {"Darwin": "librows.dylib"}.get(platform.system(), "librows.so")
COST = "without the native path, common messages cost three to six times the processor time (docs/native.md)"
GET_CARGO = "install Rust (https://rustup.rs; Debian: sudo apt-get install cargo-web rustc-web), then: make setup"


class NativeError(Exception):
    """Raised if the extension cannot be built. The message gives the reason."""


class CratesError(NativeError):
    """Raised if the extension's crates are not available: no registry responds, or the crates differ from the list."""


def build() -> Path:
    """Put the extension into the checkout, and return its path. The extension is built from the current
    source, or copied from the cache.

    Raises:
        NativeError: cargo is missing, a crate differs from the list, or the compiler failed.
    """
    kept = cache() / f"native-{_source_hash()}"
    texts = kept.with_suffix(".licenses")
    with only_one(kept):
        if not (kept.is_file() and texts.is_file()):
            if shutil.which("cargo") is None:
                raise NativeError(f"cargo was not found: {GET_CARGO}")
            _compile(kept, texts)
    _put(kept, BUILT)
    _put(texts, BUILT.with_name(LICENSES))
    return BUILT


def _put(kept: Path, place: Path) -> None:
    """Replace a file with a single rename, because another process may have loaded the old one."""
    if not place.is_file() or place.read_bytes() != kept.read_bytes():
        fresh = place.with_suffix(f".{os.getpid()}")
        shutil.copyfile(kept, fresh)
        fresh.rename(place)


def check() -> None:
    """Check the source with rustfmt, clippy and the crate's own tests, once per source version. Without crates, only
    rustfmt runs.

    Raises:
        NativeError: a check failed.
    """
    if shutil.which("rustfmt") is None or shutil.which("cargo-clippy") is None:
        return
    stamp = cache() / f"native-{_source_hash()}.checked"
    if stamp.exists():
        return
    _run(["cargo", "fmt", "--check"], CRATE)
    try:
        with only_one(stamp), locked_crate() as crate:
            _run(["cargo", "clippy", "--locked", "--quiet", "--all-targets", "--", "--deny", "warnings"], crate)
            _test(crate)
    except CratesError as error:
        print(f"native: clippy was skipped: {error}", file=sys.stderr)
        return
    stamp.touch()


def _test(crate: Path) -> None:
    """Run the crate's tests, which need libpython. Some Python installations do not have libpython."""
    try:
        _run(["cargo", "test", "--locked", "--quiet", "--no-default-features"], crate)
    except NativeError as error:
        if not any(cause in str(error) for cause in ("linking with", "loading shared libraries")):
            raise
        print("native: the tests in Rust were skipped: this Python has no libpython to link to", file=sys.stderr)


def checksums(text: str) -> Mapping[str, str]:
    """Return each crate's checksum by name and version, from lines in sha256sum's format."""
    pairs = (line.split() for line in text.splitlines())
    return {crate: checksum for checksum, crate in pairs}


def differences(lock: str, wanted: Mapping[str, str]) -> list[str]:
    """Return the differences between a Cargo.lock and the list, as strings."""
    packages = tomllib.loads(lock)["package"]
    found = {f"{p['name']}-{p['version']}": p["checksum"] for p in packages if "checksum" in p}
    return [
        *(f"{crate} is not in the list" for crate in sorted(found.keys() - wanted.keys())),
        *(f"{crate} of the list is not used" for crate in sorted(wanted.keys() - found.keys())),
        *(
            f"{crate} has another checksum"
            for crate in sorted(found)
            if wanted.get(crate, found[crate]) != found[crate]
        ),
    ]


@contextmanager
def locked_crate() -> Iterator[Path]:
    """For a copy of our crate, create a Cargo.lock with exactly the listed crates, so that cargo downloads no
    others.
    """
    with tempfile.TemporaryDirectory() as folder:
        crate = Path(folder, "crate")
        shutil.copytree(CRATE, crate, ignore=shutil.ignore_patterns("*.so", "*.py*", "__pycache__", "Cargo.lock"))
        lock, wanted = crate / "Cargo.lock", checksums(CHECKSUMS.read_text())
        _run(["cargo", "generate-lockfile", "--quiet"], crate, CratesError)
        # cargo chose the newest compatible versions, but the list may have older versions.
        versions = dict(name.rsplit("-", 1) for name in wanted)
        for package in tomllib.loads(lock.read_text())["package"]:
            name, version = package["name"], package["version"]
            if versions.get(name, version) != version:
                _run(["cargo", "update", "--quiet", "--package", name, "--precise", versions[name]], crate, CratesError)
        if differs := differences(lock.read_text(), wanted):
            raise CratesError(f"the crates differ from dev/crates.sha256: {'; '.join(differs)}")
        _run(["cargo", "fetch", "--locked", "--quiet"], crate, CratesError)
        yield crate


def crate_packages(crate: Path) -> list[Any]:
    """Return the crates that `cargo metadata` lists for a copy of our crate, except ours."""
    found = json.loads(_run(["cargo", "metadata", "--format-version", "1", "--locked"], crate))["packages"]
    return sorted((one for one in found if one["source"]), key=lambda one: (one["name"], one["version"]))


def licenses(found: Sequence[Any]) -> str:
    """Return the crates' licenses, with the license texts from their packages."""
    parts = []
    for one in found:
        files = sorted(
            path for path in Path(one["manifest_path"]).parent.iterdir() if path.name.upper().startswith(_LEGAL)
        )
        texts = [path.read_text(encoding="utf-8").strip() for path in files if path.is_file()]
        parts.append("\n\n".join((f"{one['name']} {one['version']}: {one['license']}", *texts)))
    return f"\n\n{'-' * 80}\n\n".join(parts) + "\n"


_LEGAL = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def _compile(to: Path, texts: Path) -> None:
    print("native: compiling the native path (a minute, once)", file=sys.stderr)
    with locked_crate() as crate:
        packages = crate_packages(crate)
        _run(["cargo", "build", "--release", "--locked", "--quiet", "--config", _without_paths(packages)], crate)
        texts.write_text(licenses(packages), encoding="utf-8")
        made = crate / "target" / "release" / LIBRARY
        fresh = to.with_suffix(".new")
        shutil.copyfile(made, fresh)
        fresh.rename(to)


def _without_paths(packages: Sequence[Any]) -> str:
    """Return a setting for cargo that removes the folders of crates from the extension. The locations of panics contain
    these folders. The folders differ between machines and include the user's name.
    """
    folders = sorted({str(Path(one["manifest_path"]).parents[1]) for one in packages})
    return f"target.'cfg(all())'.rustflags={json.dumps([f'--remap-path-prefix={one}=crates' for one in folders])}"


def _run(command: Sequence[str], folder: Path, failure: type[NativeError] = NativeError) -> str:
    environment = {**os.environ, "PYO3_PYTHON": sys.executable, "CARGO_TERM_COLOR": "never"}
    environment.pop("CARGO_TARGET_DIR", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return done.stdout


def _source_hash() -> str:
    found = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    if shutil.which("rustc") is not None:
        found.update(_run(["rustc", "--version", "--verbose"], CRATE).encode())
    for path in SOURCES:
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def main(arguments: Sequence[str]) -> int:
    try:
        if "--check" in arguments:
            check()
        else:
            build()
    except NativeError as error:
        if arguments:
            print(f"native: {error}", file=sys.stderr)
            return 1
        for path in (BUILT, BUILT.with_name(LICENSES)):
            path.unlink(missing_ok=True)  # built from another version of the source
        print(f"native: not built; {COST}. {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
