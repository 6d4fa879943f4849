"""Turn Kafka records into typed events for one table."""
