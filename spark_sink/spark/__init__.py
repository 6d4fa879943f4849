"""The Spark session, the query's checkpoint, the workers, and the meaning of Spark's errors."""
