"""The consumer group's state, stored in compacted topics."""
