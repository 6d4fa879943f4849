"""The memory of the consumer group, in compacted topics."""
