"""The id of a checkpoint distinguishes its batches from those of an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_core import state_format
from spark_sink.errors import FatalError, Overtaken
from spark_sink.spark.checkpoint import check_id, checkpoint_id


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
