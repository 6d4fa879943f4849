"""The id of a checkpoint distinguishes its batches from those of an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_core import state_format
from spark_sink.errors import ConfigError, FatalError, Overtaken
from spark_sink.spark.checkpoint import check_id, check_progress, checkpoint_id, has_progress, progress
from tests.spark_sink.sink_process import PATIENCE_SECONDS


def test_two_sinks_that_begin_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Until a batch is known, each sink that starts sets a new id, and the previous sink cannot continue."""
    checkpoint = str(tmp_path / "checkpoint")
    first = checkpoint_id(spark, checkpoint)
    check_id(spark, checkpoint, first)
    second = checkpoint_id(spark, checkpoint)
    with pytest.raises(Overtaken, match="another sink or program wrote the checkpoint"):
        check_id(spark, checkpoint, first)
    tmp_path.joinpath("checkpoint", "offsets").mkdir()
    tmp_path.joinpath("checkpoint", "offsets", "0").touch()
    assert second == checkpoint_id(spark, checkpoint)
    check_id(spark, checkpoint, second)


def test_an_id_that_another_sink_replaces(spark: SparkSession, tmp_path: Path) -> None:
    """Not every file system replaces a file in one step, so the id may be missing for a moment."""
    checkpoint = tmp_path / "checkpoint"
    id = checkpoint_id(spark, str(checkpoint))
    checkpoint.joinpath("_sink_id").unlink()
    with pytest.raises(Overtaken, match="another sink or program wrote the checkpoint"):
        check_id(spark, str(checkpoint), id)


def test_an_interrupted_first_write(spark: SparkSession, tmp_path: Path) -> None:
    """A crash during the first write to the checkpoint leaves a temporary file. The next start continues."""
    checkpoint = tmp_path / "checkpoint"
    for log in ("offsets", "commits"):
        checkpoint.joinpath(log).mkdir(parents=True)
        checkpoint.joinpath(log, ".0.1b2c.tmp").touch()
    assert not has_progress(spark, str(checkpoint))
    topic = tmp_path / "topic"
    topic.mkdir()
    topic.joinpath("events").write_text("a\n")
    batches: list[int] = []
    writer = spark.readStream.text(str(topic)).writeStream.foreachBatch(lambda _rows, batch: batches.append(batch))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_SECONDS)
    assert [0] == batches
    assert has_progress(spark, str(checkpoint))


def test_a_checkpoint_without_plans(spark: SparkSession, tmp_path: Path) -> None:
    """If only the plans of the batches are missing, the checkpoint was damaged, and the sink says so."""
    checkpoint = tmp_path / "checkpoint"
    checkpoint.joinpath("commits").mkdir(parents=True)
    checkpoint.joinpath("commits", "3").touch()
    assert has_progress(spark, str(checkpoint))
    with pytest.raises(ConfigError, match="was rolled back to a state before the warehouse: its newest batch is None"):
        check_progress(str(checkpoint), progress(spark, str(checkpoint)), 3)


def test_the_format(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint from before 0.1.0 contains only its id. A release that knows no later format reads no other one."""
    checkpoint = str(tmp_path / "checkpoint")
    id = checkpoint_id(spark, checkpoint)
    old = tmp_path / "old"
    old.mkdir()
    old.joinpath("_sink_id").write_bytes(len(id).to_bytes(2, "big") + id.encode())
    check_id(spark, str(old), id)
    monkeypatch.setattr(state_format, "FORMAT", 0)
    check_id(spark, str(old), id)
    with pytest.raises(FatalError, match=r"the checkpoint .*has the format '1' of release"):
        check_id(spark, checkpoint, id)
