"""Spark: the session, the checkpoint of the query, the workers, and the interpretation of Spark's errors."""
