"""Convert Kafka records to typed events for one table."""
