"""Convert Kafka records to typed events of one table."""
