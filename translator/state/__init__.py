"""The state of the consumer group, stored in compacted topics."""
