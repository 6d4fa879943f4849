"""Manage the Spark session, the query's checkpoint and the workers, and interpret Spark's errors."""
