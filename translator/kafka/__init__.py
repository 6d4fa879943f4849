"""Clients for Kafka and the schema registry. They depend neither on Faust nor on the meaning of records."""
