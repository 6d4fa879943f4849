"""Spark's settings for runs of a minute, as tests and the demo make: most of their time is the start of the JVM."""

_JAVA = (
    "-XX:+UseSerialGC",
    # The second compiler takes half of the JVM's processor time in such a run, and pays in none.
    "-XX:TieredStopAtLevel=1",
    # Without it the default is a fifth, which is soon full: what was compiled is thrown away, and compiled again.
    "-XX:ReservedCodeCacheSize=256m",
    # Spark's own classes are verified at every start, some 20 000 of them.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # Java 17 makes a class for whatever is called by reflection 15 times, as all that is sent to a task is.
    "-Dsun.reflect.inflationThreshold=2147483647",
)

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
    "spark.driver.extraJavaOptions": " ".join(_JAVA),
    # Nobody else is to connect, and the machine's own name need not be known.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
