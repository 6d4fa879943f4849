"""The offsets where a new checkpoint begins to read: behind what its pipeline has done before, else those of the
settings."""

from __future__ import annotations

import json
from collections.abc import Mapping

import structlog

from spark_sink.errors import ConfigError

log = structlog.get_logger()

# What Spark's Kafka source calls the first offset that is there.
_EARLIEST = -2

Starting = str | Mapping[int, int]


def starting_offsets(topic: str, configured: Starting, reached: Mapping[int, int], ends: Mapping[int, int]) -> str:
    """The option `startingOffsets`; Spark ignores it once the checkpoint knows better.

    Args:
        configured: `earliest`, `latest`, or offsets by partition; other partitions are read from their beginning.
        reached: by partition, what the manifest says was applied up to; empty for a pipeline that has done nothing.
        ends: the end of every partition of the topic.

    Raises:
        ConfigError: an offset or partition is not in the topic.
    """
    if reached:
        source, wanted = "the manifest", reached
        log.warning("checkpoint is empty; reading goes on where the manifest ends", topic=topic, offsets=dict(reached))
    elif isinstance(configured, str):
        return configured
    else:
        source, wanted = "input.starting_offsets", configured
    beyond = [f"{partition}: {offset}" for partition, offset in wanted.items() if offset > ends.get(partition, -1)]
    if beyond:
        raise ConfigError(
            f"offsets of {source} lie beyond the end of {topic} ({', '.join(beyond)}); was the topic made anew? Then "
            "give this pipeline another name, or remove its rows from _cdc.batches"
        )
    return json.dumps({topic: {str(partition): wanted.get(partition, _EARLIEST) for partition in sorted(ends)}})
