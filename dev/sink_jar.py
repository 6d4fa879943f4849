"""Compile the sink's Java (`spark_sink/_java`) to a jar for Spark: `python -m dev.sink_jar [--must]`.

The jar is needed only for tables on S3. The compiler needs a JDK. Spark itself needs only a JRE. If the jar cannot be
built, the command prints one line with the reason, the consequence and the remedy. The exit code is 0, or 1 with
`--must`. The result is kept in the user's cache, under the hash of its source.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from dev.jars import CHECKSUMS, JarsError, cache, only_one, pyspark, spark_jars
from dev.java import JavaError, find_java

SOURCE = Path(__file__).parents[1] / "spark_sink" / "_java"

# The older of the two Java releases that Spark supports.
RELEASE = "17"

COST = "without the jar of the sink there are no tables on S3 (docs/sink/object-stores.md)"
GET_JDK = "install a JDK (Debian: sudo apt-get install openjdk-17-jdk-headless), then: make setup"

# The earliest date that an archive can store. With a fixed date, the same source always gives the same bytes.
_DAY = (1980, 1, 1, 0, 0, 0)


class SinkJarError(Exception):
    """Raised if the jar cannot be built. The message gives the reason."""


def sink_jar() -> Path:
    """Return the jar, built from the current source or taken from the cache.

    Raises:
        SinkJarError: no compiler was found, or the compiler failed.
    """
    kept = cache() / f"cdc-sink-{_source_hash()}.jar"
    with only_one(kept):
        if not kept.is_file():
            _compile(kept)
    return kept


def _compile(to: Path) -> None:
    compiler = find_java().executable.resolve().with_name("javac")
    if not compiler.is_file():
        raise SinkJarError(f"there is no {compiler}: {GET_JDK}")
    class_path = os.pathsep.join((*map(str, spark_jars()), str(pyspark() / "jars" / "*")))
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch:
        classes = Path(scratch, "classes")
        # Warnings that come from other projects' jars are excluded.
        options = ("--release", RELEASE, "-Xlint:all,-classfile,-path,-processing", "-Werror", "-proc:none")
        command = (compiler, *options, "-d", classes, "-classpath", class_path, *_sources())
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SinkJarError(f"javac failed:\n{done.stderr or done.stdout}")
        fresh = Path(scratch, to.name)
        with zipfile.ZipFile(fresh, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix(), _DAY), path.read_bytes())
        fresh.rename(to)


def _sources() -> list[Path]:
    return sorted(SOURCE.glob("*.java"))


def _source_hash() -> str:
    """Return a fingerprint for the source and the jars that are needed to compile it."""
    found = hashlib.sha256(pyspark().joinpath("version.py").read_bytes())
    for path in (CHECKSUMS, *_sources()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def main(arguments: Sequence[str]) -> int:
    try:
        print(sink_jar())
    except (SinkJarError, JarsError, JavaError) as error:
        must = "--must" in arguments
        print(f"sink jar: {error}" if must else f"sink jar: not built; {COST}. {error}", file=sys.stderr)
        return int(must)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
