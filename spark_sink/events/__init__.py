"""From Kafka records to the typed events of one table."""
