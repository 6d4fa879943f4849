"""Choose the offsets at which a new checkpoint begins. They are the ones that its pipeline has reached or, failing
that, the configured ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import structlog

from spark_sink.errors import ConfigError

log = structlog.get_logger()

# What Spark's Kafka source calls the first available offset.
_EARLIEST = -2

Starting = str | Mapping[int, int]


def starting_offsets(topic: str, configured: Starting, reached: Mapping[int, int], ends: Mapping[int, int]) -> str:
    """Return the `startingOffsets` option. Spark ignores this option once the checkpoint has offsets.

    Args:
        configured: `earliest`, `latest`, or offsets by partition. All other partitions are read from their beginning.
        reached: the offset that the pipeline has reached in each partition. Empty for a new pipeline.
        ends: the end offset for every partition in the topic.

    Raises:
        ConfigError: an offset or a partition does not exist in the topic.
    """
    if reached:
        source, wanted = "the manifest", reached
        log.warning("checkpoint is empty, resuming at the end of the manifest", topic=topic, offsets=dict(reached))
    elif isinstance(configured, str):
        return configured
    else:
        source, wanted = "input.starting_offsets", configured
    beyond = [f"{partition}: {offset}" for partition, offset in wanted.items() if offset > ends.get(partition, -1)]
    if beyond:
        raise ConfigError(
            f"offsets in {source} are past the end of {topic} ({', '.join(beyond)}). If the topic was recreated, "
            "rename this pipeline, or remove its rows from _cdc.batches"
        )
    return json.dumps({topic: {str(partition): wanted.get(partition, _EARLIEST) for partition in sorted(ends)}})
