"""Clients of Kafka and of the schema registry, without Faust and without meaning."""
