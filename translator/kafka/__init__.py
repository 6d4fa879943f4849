"""Clients for Kafka and the schema registry. They know nothing about Faust or about the meaning of records."""
