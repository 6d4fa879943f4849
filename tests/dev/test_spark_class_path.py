"""The Spark of a checkout finds our jars without a setting."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dev import sink_jar, spark_class_path


def test_the_default_of_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Driver and executors have the same class path."""
    monkeypatch.setattr(spark_class_path, "pyspark", lambda: tmp_path)
    said = spark_class_path.make_default(["/a/*", "/b.jar"]).read_text()
    assert said.endswith("spark.driver.extraClassPath /a/*:/b.jar\nspark.executor.extraClassPath /a/*:/b.jar\n")
    assert said == (tmp_path / "conf" / "spark-defaults.conf").read_text()


def test_jar_of_the_sink() -> None:
    """It holds a class of each source, by which the class path is told from one that lacks it."""
    *folders, jar = spark_class_path.class_path()
    assert ["spark", "s3"] == [Path(folder).parent.name for folder in folders]
    wanted = {f"cdc/sink/{path.stem}.class" for path in sink_jar.SOURCE.glob("*.java")}
    assert wanted
    assert wanted <= set(zipfile.ZipFile(jar).namelist())


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a JRE the rest of the class path stands, and one line says what is not there and how to get it."""
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
