"""The id of a checkpoint distinguishes its batches from those of an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
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
