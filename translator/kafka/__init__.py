"""Clients for Kafka and the schema registry. They do not depend on Faust or on what records mean."""
