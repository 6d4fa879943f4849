"""Clients for Kafka and the schema registry, independent of Faust and of the meaning of records."""
