"""Download the jars for Spark and the broker into the user's cache, once, and verify them against dev/jars.sha256.

dev/jars.xml lists the jars to download. The cache folder is named after the hash of that file, so checkouts with
different versions do not conflict. PySpark's own Ivy downloads the jars.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev.java import JavaError, find_java

HERE = Path(__file__).parent
WANTED = HERE / "jars.xml"
CHECKSUMS = HERE / "jars.sha256"

# The configurations in jars.xml. Each configuration has a folder in the cache, whose jars form one class path.
CONFIGURATIONS = ("spark", "s3", "broker")

# The file with the last verified state: each jar's size and time, and the list's hash.
MARKER = "verified.json"

DELETE_AND_FETCH = "Delete that folder and run `make setup`, which fetches them again"

# On a bad connection, one of sixty consecutive small downloads often fails. Ivy keeps the finished downloads.
ATTEMPTS = 3


class JarsError(Exception):
    """Raised if the jars cannot be used. The message lists the jars and explains what to do."""


def spark_jars() -> list[Path]:
    """Return the jars that Spark needs in addition to PySpark's own jars, as a list for `spark.jars`."""
    return [jar for folder in spark_folders() for jar in sorted(folder.glob("*.jar"))]


def spark_folders() -> list[Path]:
    """Return the folders with those jars."""
    return [jars_directory() / configuration for configuration in ("spark", "s3")]


def broker_jars() -> list[Path]:
    """Return the whole class path for the Kafka broker and its tools."""
    return sorted((jars_directory() / "broker").glob("*.jar"))


def jars_directory() -> Path:
    """Return the folder with all jars. The jars are downloaded if necessary, and verified.

    Every jar is hashed after the download, and again if the size or time of any jar has changed.
    """
    directory = cache() / f"jars-{hashlib.sha256(WANTED.read_bytes()).hexdigest()[:12]}"
    with only_one(directory):
        if not directory.is_dir():
            with _fetched(directory) as fresh:
                verify(fresh, CHECKSUMS, remedy="They were deleted; run `make setup` to download them again")
        else:
            verify(directory, CHECKSUMS)
    return directory


def write_checksums() -> int:
    """Download the jars again, write the list, and return the number of jars. Use this after a change of jars.xml."""
    directory = cache() / f"jars-{hashlib.sha256(WANTED.read_bytes()).hexdigest()[:12]}"
    with only_one(directory), _fetched(directory) as fresh:
        sums = _checksums_of(fresh)
        CHECKSUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())))
    return len(sums)


def verify(directory: Path, checksums: Path, remedy: str = DELETE_AND_FETCH) -> None:
    """Verify the jars in `directory` against the list. The verification is cheap if nothing has changed since the last
    time.
    """
    state = {"list": hashlib.sha256(checksums.read_bytes()).hexdigest(), "jars": _stamps_of(directory)}
    marker = directory / MARKER
    if marker.is_file() and _read_marker(marker) == state:
        return
    differences = _differences(read_checksums(checksums), _checksums_of(directory))
    if differences:
        raise JarsError(
            f"the jars in {directory} differ from dev/{checksums.name} ({differences}). {remedy}; "
            f"if they still differ, and dev/{WANTED.name} was changed on purpose, renew the list: "
            ".venv/bin/python -m dev.jars --write-checksums"
        )
    marker.write_text(json.dumps(state))


def _differences(wanted: dict[str, str], found: dict[str, str]) -> str:
    differences = {
        "missing": sorted(wanted.keys() - found.keys()),
        "not in the list": sorted(found.keys() - wanted.keys()),
        "changed or damaged": sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name]),
    }
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in differences.items() if names)


def read_checksums(path: Path) -> dict[str, str]:
    """Return the checksums by name from a list in sha256sum's format."""
    lines = path.read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def _read_marker(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except ValueError:  # the file is truncated, perhaps because of a full disk: verify again
        return None


def _jars_in(directory: Path) -> Iterator[tuple[str, Path]]:
    for configuration in CONFIGURATIONS:
        for path in sorted((directory / configuration).glob("*")):
            yield f"{configuration}/{path.name}", path


def _checksums_of(directory: Path) -> dict[str, str]:
    sums = {}
    for name, path in _jars_in(directory):
        with path.open("rb") as file:
            sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _stamps_of(directory: Path) -> dict[str, list[int]]:
    return {name: [path.stat().st_size, path.stat().st_mtime_ns] for name, path in _jars_in(directory)}


def cache() -> Path:
    """Return the folder for downloads: CDC_CACHE, or the user's cache."""
    base = os.environ.get("CDC_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "cdc-translator"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Let a second process wait until the first one has finished. If a process dies, its lock is released."""
    with directory.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _fetched(directory: Path) -> Iterator[Path]:
    """Download into a temporary folder. Rename the folder once the caller's checks have passed."""
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
        _retrieve(Path(temporary))
        fresh = Path(temporary) / "jars"
        yield fresh
        if directory.exists():
            shutil.rmtree(directory)
        fresh.rename(directory)


def _retrieve(temporary: Path) -> None:
    total = len(read_checksums(CHECKSUMS)) if CHECKSUMS.exists() else None
    fetch(WANTED, CONFIGURATIONS, ("jar", "bundle"), temporary, f"{total or 'the'} jars")


def fetch(wanted: Path, configurations: Sequence[str], types: Sequence[str], temporary: Path, what: str) -> None:
    """Let Ivy fill `temporary`/jars/CONFIGURATION from the list `wanted`. `what` describes the jars in messages.

    Raises:
        JarsError: a download failed.
    """
    command = [
        *(find_java().executable, "-jar", _ivy()),
        *("-ivy", wanted, "-confs", *configurations, "-types", *types),
        *("-retrieve", f"{temporary}/jars/[conf]/[artifact]-[revision].[ext]", "-cache", temporary / "ivy"),
    ]
    for attempt in range(1, ATTEMPTS + 1):
        code, lines = _run_ivy([str(word) for word in command], what)
        if code == 0:
            return
        _say(f"jars: attempt {attempt} of {ATTEMPTS} failed")
    # Ivy repeats the relevant lines in a summary at the end, between lines of colons.
    reasons = [line.strip(" :\t") for line in lines if "#" in line and "not found" in line] or lines[-5:]
    raise JarsError(
        f"could not download {what} of dev/{wanted.name} ({'; '.join(dict.fromkeys(reasons))}). They come from Maven's "
        "central repository. Check that this machine can reach it (set a proxy in JAVA_TOOL_OPTIONS, as "
        "-Dhttps.proxyHost=... -Dhttps.proxyPort=...), then try again"
    )


def _run_ivy(command: list[str], what: str) -> tuple[int, list[str]]:
    """Run Ivy, and reduce its output to one progress line. Return its exit code and output."""
    on_terminal = sys.stderr.isatty()
    _say(f"jars: downloading {what} into the cache (once; a minute or two)")
    lines: list[str] = []
    arrived = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            lines.append(line.rstrip())
            if "[SUCCESSFUL ]" in line:
                arrived += 1
                if on_terminal:
                    print(f"\rjars: {arrived} arrived", end="", file=sys.stderr, flush=True)
    if on_terminal and arrived:
        print(file=sys.stderr)
    return ivy.returncode, lines


def pyspark() -> Path:
    """Return PySpark's folder."""
    # find_spec does not import PySpark, which takes a second to load.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise JarsError("PySpark, which includes Ivy, is not installed in this Python; run `make setup`")
    return Path(spec.submodule_search_locations[0])


def _ivy() -> Path:
    folder = pyspark() / "jars"
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise JarsError(f"no ivy-*.jar in {folder}; this PySpark is damaged: delete .venv and run `make setup`")
    return found[-1]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.jars", description="Download and verify the jars.")
    parser.add_argument(
        "--write-checksums", action="store_true", help="Download all jars again and update dev/jars.sha256."
    )
    arguments = parser.parse_args()
    try:
        if arguments.write_checksums:
            _say(f"jars: {write_checksums()} checksums written to dev/{CHECKSUMS.name}")
        else:
            jars_directory()
    except (JarsError, JavaError) as error:
        _say(f"jars: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
