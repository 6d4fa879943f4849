"""Kafka: the only part that knows Faust, aiokafka or librdkafka (facts behind each rule: docs/decisions)."""
