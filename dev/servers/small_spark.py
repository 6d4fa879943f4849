"""Spark settings for runs of about a minute, as in tests and the demo, which mostly wait for the JVM to start."""

_JAVA = (
    "-XX:+UseSerialGC",
    # The second compiler uses half of the JVM's processor time in such a run, without a benefit.
    "-XX:TieredStopAtLevel=1",
    # The default is a fifth of this. It fills up quickly, so compiled code is dropped and compiled again.
    "-XX:ReservedCodeCacheSize=256m",
    # Otherwise some 20 000 of Spark's own classes are verified at every start.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # Java 17 generates a class for a method called 15 times by reflection, such as everything sent to a task.
    "-Dsun.reflect.inflationThreshold=2147483647",
)

SMALL_SPARK = {
    "spark.ui.enabled": "false",
    # The sink sets the number of tasks for tables. The remaining data is small.
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Generated and compiled code per statement only pays off with many rows, but statements here have few.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    # So does planning again after every stage, with the sizes known by then.
    "spark.sql.adaptive.enabled": "false",
    # Spark verifies its plans after every rule, which only helps developers of rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.driver.extraJavaOptions": " ".join(_JAVA),
    # Nothing else connects, and the host name of the machine does not have to be resolvable.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
