"""Spark's settings for runs of a minute, as tests and the demo make: most of their time is the start of the JVM."""

SMALL_SPARK = {
    "spark.ui.enabled": "false",
    # The sink says itself over how many tasks it spreads tables; what is left is small.
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Java that is made and compiled for each statement pays with many rows; here there are some to a statement.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    # So does planning anew after every stage, with what it has told of sizes.
    "spark.sql.adaptive.enabled": "false",
    # Spark holds its plans against each other after every rule; that is for whoever changes rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    # The second compiler takes half of the JVM's processor time in such a run, and pays in none.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Nobody else is to connect, and the machine's own name need not be known.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
