"""Spark's settings for runs of a minute, as tests and the demo make: most of their time is the start of the JVM."""

SMALL_SPARK = {
    "spark.ui.enabled": "false",
    # More than one, so that the tables of a batch still are in several tasks.
    "spark.sql.shuffle.partitions": "2",
    # The second compiler takes half of the JVM's processor time in such a run, and pays in none.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Nobody else is to connect, and the machine's own name need not be known.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
