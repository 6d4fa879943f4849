"""Run Apache Flink SQL. It converts `canal-json` to `debezium-json` in a mini cluster with a single process. Flink also
checks types.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contestants.base import PRODUCER, Assignment, Installed, Launch
from bench.generators import MessageStream
from bench.generators.history import tables_of
from dev.environments import NotInstalledError, download
from dev.jars import JarsError, cache, fetch, only_one, read_checksums
from dev.java import JavaError, find_java

HERE = Path(__file__).parent
WHEEL = "apache-flink-libraries==2.2.1"
CONNECTOR = HERE / "flink.xml"
CHECKSUMS = HERE / "flink.sha256"
PROGRAM = HERE / "programs" / "FlinkPeer.java"

_TYPES: Mapping[str, str] = {
    "bigint": "BIGINT",
    "int": "INT",
    "decimal": "DECIMAL(12,2)",
    "text": "STRING",
    "datetime": "TIMESTAMP(0)",
    "datetime3": "TIMESTAMP(3)",
}
_JVM = (
    *("-Xms1500m", "-Xmx1500m", "-XX:+UseG1GC"),
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.util", "java.lang", "java.nio")),
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
)


@dataclass(frozen=True)
class FlinkSql:
    """A typed table for the raw topic, and another table for the output. Delivery is at least once, and the parallelism
    is 1.
    """

    name: str = "Flink SQL"
    formats: frozenset[str] | None = frozenset({"canal"})
    groups: bool = False
    # Java's compiler is still busy during the first few hundred thousand messages.
    warm_share: float = 0.5
    warm_seconds: float = 30.0

    def install(self) -> Installed:
        """Fetch the jars, and compile the program that runs the statements."""
        _home()
        return Installed(f"{WHEEL.replace('==', ' ')}, Java {find_java().version}")

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        statements = assignment.directory / "statements.sql"
        statements.write_text("\n;\n".join(sql(assignment)), encoding="utf-8")
        home = _home()
        options = [*_JVM, f"-Djava.io.tmpdir={assignment.directory}"]
        class_path = os.pathsep.join((str(home / "classes"), str(home / "jars" / "*")))
        command: list[str | Path] = [find_java().executable, *options, "-cp", class_path, "FlinkPeer", statements]
        return [Launch([*command, str(assignment.processes)])]

    def records(self, stream: MessageStream) -> int:
        """Count two records per update: the row before and the row after."""
        return sum(2 if message.updates else 1 for message in stream.messages if not message.skipped)


def sql(assignment: Assignment) -> list[str]:
    """Return the statements that create two tables and copy rows from the first to the second."""
    columns = tables_of(assignment.spec)[0].columns
    typed = ", ".join(f"{column.name} {_TYPES[column.kind]}" for column in columns)
    names = ", ".join(column.name for column in columns)
    metadata = {"db": ("STRING", "database"), "tb": ("STRING", "table"), "ts": ("TIMESTAMP_LTZ(3)", "event-timestamp")}
    read = ", ".join(f"m_{n} {kind} METADATA FROM 'value.{of}' VIRTUAL" for n, (kind, of) in metadata.items())
    write = ", ".join(f"m_{name} {kind}" for name, (kind, _) in metadata.items())
    kafka = {"connector": "kafka", "properties.bootstrap.servers": assignment.bootstrap}
    source = {
        **kafka,
        "topic": assignment.raw,
        "properties.group.id": assignment.group,
        "properties.max.partition.fetch.bytes": "4194304",
        "scan.startup.mode": "earliest-offset",
        "format": "canal-json",
    }
    producer = {f"properties.{name}": str(PRODUCER[name]) for name in ("compression.type", "linger.ms", "batch.size")}
    sink = {
        **kafka,
        "topic": assignment.output,
        **producer,
        "format": "debezium-json",
        "sink.delivery-guarantee": "at-least-once",
    }
    return [
        f"CREATE TABLE source_table ({typed}, {read}) WITH ({_options(source)})",
        f"CREATE TABLE sink_table ({typed}, {write}) WITH ({_options(sink)})",
        f"INSERT INTO sink_table SELECT {names}, {', '.join(f'm_{name}' for name in metadata)} FROM source_table",  # noqa: S608
    ]


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


def _home() -> Path:
    """Return the folder with the jars and the compiled program. The first call creates the folder."""
    wanted = b"\0".join((CONNECTOR.read_bytes(), CHECKSUMS.read_bytes(), PROGRAM.read_bytes()))
    directory = cache() / f"bench-flink-{hashlib.sha256(wanted).hexdigest()[:12]}"
    with only_one(directory):
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
                fresh = Path(temporary)
                try:
                    _fetch(fresh)
                    _compile(fresh)
                except (JarsError, JavaError) as error:
                    raise NotInstalledError(str(error)) from None
                fresh.chmod(0o755)
                shutil.copytree(fresh, directory)
    return directory


def _fetch(to: Path) -> None:
    jars = to / "jars"
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch:
        folder = Path(scratch) / "wheel"
        folder.mkdir()
        wheel = download(WHEEL, folder)
        fetch(CONNECTOR, ("flink",), ("jar",), Path(scratch) / "ivy", "Flink's Kafka connector")
        (connector,) = (Path(scratch) / "ivy" / "jars" / "flink").glob("*.jar")
        for file in (wheel, connector):
            _verify(file)
        jars.mkdir()
        shutil.copy(connector, jars)
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                if name.startswith("pyflink/lib/") and name.endswith(".jar"):
                    (jars / Path(name).name).write_bytes(packed.read(name))


def _verify(file: Path) -> None:
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != read_checksums(CHECKSUMS).get(file.name):
        raise NotInstalledError(f"{file.name} has the checksum {found}, which differs from {CHECKSUMS.name}")


def _compile(to: Path) -> None:
    compiler = shutil.which("javac")
    if compiler is None:
        raise NotInstalledError("javac is required to compile Flink's program, but is missing. Install a JDK")
    class_path = os.pathsep.join(map(str, (to / "jars").glob("*.jar")))
    command = [compiler, "-cp", class_path, "-d", str(to / "classes"), str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotInstalledError(f"Flink's program does not compile: {done.stderr.splitlines()[:1]}")
