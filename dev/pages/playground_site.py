"""Build the playground as files that need no desk: `python -m dev.pages.playground_site FOLDER`.

The translator runs in the page with Pyodide, which is Python compiled to WebAssembly. Pyodide is downloaded from npm
and msgspec's wheel for it from PyPI, both by hash, into build/docs-assets. All other packages run as pure Python, and
are copied from this environment. The page loads nothing from any other place. The samples are rendered in advance, so
they need no scripts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from dev.pages import npm
from translator.web.meanings import meanings
from translator.web.playground import samples
from translator.web.playground_page import blank, translated_sample
from translator.web.templating import FILES, rendered

ROOT = Path(__file__).parents[2]
_ASSETS = ROOT / "build" / "docs-assets"

PYODIDE = "pyodide@314.0.7"
_PYODIDE_SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
_PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
_PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--abi", "cp314")

_PURE = ("fastavro", "jinja2", "markupsafe", "pyyaml", "sqlglot", "typing-extensions", "tzdata")
"""The packages that the playground imports, in addition to msgspec and our own."""

_STATIC = ("desk.css", "desk.js", "desk.svg")
_NAV = (("../index.html", "Documentation"), (FILES.playground, "Playground"), (FILES.codes, "Codes"))


def fetched() -> tuple[Path, Path] | None:
    """Return the archives for Pyodide and its msgspec, downloading them if necessary.

    Returns:
        None if a registry does not offer its archive. The reason is printed.
    """
    _ASSETS.mkdir(parents=True, exist_ok=True)
    try:
        return _pyodide(), _msgspec()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"docs: no playground: {error}", file=sys.stderr)
        return None


def _pyodide() -> Path:
    kept = _ASSETS / "pyodide.tgz"
    if not kept.is_file():
        kept.write_bytes(npm.packed(PYODIDE))
    npm.check(PYODIDE, kept.read_bytes(), _PYODIDE_SHA256)
    return kept


def _msgspec() -> Path:
    """Return msgspec's wheel in the locked version, after pip has compared it with the hashes of the lock."""
    folder = _ASSETS / "wheels"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = re.search(r"^msgspec==(\S+) \\\n(?: +--hash=.*\n)+", lock, re.MULTILINE)
    if locked is None:
        sys.exit("docs: requirements.lock does not contain msgspec")
    if not list(folder.glob(f"msgspec-{locked[1]}-*.whl")):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
            wanted.write(locked[0].rstrip(" \\\n") + "\n")
            wanted.flush()
            command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
            where = ("--implementation", "cp", *_PLATFORM, "--dest", folder, "--require-hashes", "-r", wanted.name)
            subprocess.run((*command, *where), check=True)
    return next(folder.glob(f"msgspec-{locked[1]}-*.whl"))


def build(folder: Path) -> bool:
    """Write the playground to a folder. Return False, and write nothing, if Pyodide cannot be downloaded."""
    archives = fetched()
    if archives is None:
        return False
    pyodide, msgspec = archives
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(pyodide) as packed:
        for name in _PYODIDE_FILES:
            member = packed.extractfile(f"package/{name}")
            (folder / name).write_bytes(member.read() if member is not None else b"")
    with zipfile.ZipFile(folder / "core.zip", "w", zipfile.ZIP_DEFLATED) as core:
        for name, content in (*_own(), *_pure(), *_wheel(msgspec)):
            core.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    (folder / "core.js").write_bytes((ROOT / "dev" / "pages" / "playground_core.js").read_bytes())
    for name in _STATIC:
        (folder / name).write_bytes((ROOT / "translator" / "web" / "static" / name).read_bytes())
    pages = {FILES.playground: blank()}
    pages |= {FILES.sample.format(name): translated_sample(sample) for name, sample in samples().items()}
    for name, shown in pages.items():
        (folder / name).write_text(rendered("playground.html", FILES, nav=_NAV, **shown), encoding="utf-8")
    codes = rendered("codes.html", FILES, nav=_NAV, title="Codes", meanings=meanings())
    (folder / FILES.codes).write_text(codes, encoding="utf-8")
    return True


_COMPILED = frozenset({".so", ".pyc", ".rs", ".pyx", ".c"})


def _own() -> Iterator[tuple[str, bytes]]:
    for package in ("cdc_core", "translator"):
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and path.suffix not in _COMPILED and "target" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    about = metadata.metadata("cdc-translator")
    # The records of state name the installed release.
    lines = f"Metadata-Version: 2.1\nName: {about['Name']}\nVersion: {about['Version']}\n"
    yield f"cdc_translator-{about['Version']}.dist-info/METADATA", lines.encode()


def _pure() -> Iterator[tuple[str, bytes]]:
    """Yield the Python files and the data of the packages, with their licenses. Leave out files compiled for this
    machine.
    """
    for name in _PURE:
        for path in sorted(metadata.files(name) or ()):
            ours = ".dist-info" not in path.parts[0] or path.name == "METADATA" or "LICENSE" in path.name.upper()
            if ours and path.suffix not in _COMPILED and ".." not in path.parts:
                yield path.as_posix(), Path(str(path.locate())).read_bytes()


def _wheel(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as wheel:
        yield from ((name, wheel.read(name)) for name in sorted(wheel.namelist()))


if __name__ == "__main__":
    sys.exit(not build(Path(sys.argv[1])))
