"""What the consumer group remembers in compacted topics."""
