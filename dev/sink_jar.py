"""`python -m dev.sink_jar [--must]`: compiles the Java of the sink (`spark_sink/_java`) to a jar for Spark.

It is needed for tables on S3 only, and it needs a JDK, where Spark itself is content with a JRE. Where it cannot be
built, one line says why, what that costs and how to get it, and the exit code is 0; with `--must` it is 1. What was
built stays in the user's cache under the hash of its source.
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

# The older of the two that Spark runs on.
RELEASE = "17"

COST = "without the jar of the sink there are no tables on S3 (docs/sink.md)"
GET_JDK = "install a JDK (Debian: sudo apt-get install openjdk-17-jdk-headless), then: make setup"

# The first day that an archive can name: the same source gives the same bytes.
_DAY = (1980, 1, 1, 0, 0, 0)


class SinkJarError(Exception):
    """The jar cannot be built; the message says why."""


def sink_jar() -> Path:
    """Return the jar, built from the present source or taken from the cache.

    Raises:
        SinkJarError: there is no compiler, or it complains.
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
        # The jars of others carry warnings of their own.
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
    """Return what changes with the source, and with the jars that it is compiled against."""
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
