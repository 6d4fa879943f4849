"""`python -m bench.sink`: Kafka to Delta tables, beside the pattern of Delta's documentation."""
