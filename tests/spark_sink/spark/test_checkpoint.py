"""The id of a checkpoint: by it the batches of a checkpoint are told from those of an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
from spark_sink.spark.checkpoint import check_id, checkpoint_id


def test_two_sinks_that_begin_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """As long as no batch is known, whoever comes gives a new id; the one before does not go on with its own."""
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
