"""Spark: its session, the checkpoint of its query, its workers, and the meaning of its failures."""
