"""Spark: the session, the query's checkpoint, the workers, and what Spark's errors mean."""
