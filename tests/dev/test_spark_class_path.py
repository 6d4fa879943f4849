"""The Spark of a checkout finds our jars without a setting."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from dev import sink_jar, spark_class_path
from dev.java import Java

BASH = shutil.which("bash") or "bash"


def test_the_default_of_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Driver and executors have the same class path."""
    monkeypatch.setattr(spark_class_path, "pyspark", lambda: tmp_path)
    said = spark_class_path.make_default(["/a/*", "/b.jar"]).read_text()
    assert said.endswith("spark.driver.extraClassPath /a/*:/b.jar\nspark.executor.extraClassPath /a/*:/b.jar\n")
    assert said == (tmp_path / "conf" / "spark-defaults.conf").read_text()


def test_the_java_of_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark uses the Java of the Python package only if the machine has no other. JAVA_HOME takes precedence."""
    script = tmp_path / "conf" / "spark-env.sh"
    monkeypatch.setattr(spark_class_path, "pyspark", lambda: tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nowhere")
        spark_class_path.make_java_default()
    home = str(tmp_path / "conf" / "java")
    started = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    assert "openjdk version" in subprocess.run(started, capture_output=True, text=True, check=True).stderr
    for given, wanted in (("", home), ("/meant", "/meant")):
        command = [BASH, "-c", f'. "{script}"; echo "$JAVA_HOME"']
        assert (
            wanted == subprocess.run(command, env={"JAVA_HOME": given}, capture_output=True, text=True).stdout.strip()
        )
    monkeypatch.setattr(spark_class_path, "find_java", lambda: Java(Path("/usr/bin/java"), 17))
    spark_class_path.make_java_default()
    assert not script.exists()


def test_jar_of_the_sink() -> None:
    """The jar has a class for each source. Its presence shows that the class path is complete."""
    *folders, jar = spark_class_path.class_path()
    assert ["spark", "s3"] == [Path(folder).parent.name for folder in folders]
    wanted = {f"cdc/sink/{path.stem}.class" for path in sink_jar.SOURCE.glob("*.java")}
    assert wanted
    assert wanted <= set(zipfile.ZipFile(jar).namelist())


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a JRE only, the rest of the class path works, and one line explains what is missing and how to get it."""
    jre = tmp_path / "bin" / "java"
    jre.parent.mkdir()
    jre.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    jre.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(sink_jar, "_source_hash", lambda: "of no source")
    monkeypatch.setattr(sink_jar, "cache", lambda: tmp_path)
    assert 2 == len(spark_class_path.class_path())
    said = capsys.readouterr().err
    assert said.startswith("sink jar: not built; without the jar of the sink there are no tables on S3")
    assert "install a JDK" in said
    assert 1 == sink_jar.main(["--must"])
