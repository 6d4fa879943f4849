"""Use these Spark settings for runs of one minute, as in tests and the demo. Such runs spend most of their time on JVM
startup.
"""

_JAVA = (
    "-XX:+UseSerialGC",
    # In such a run, the second compiler would use half of the JVM's CPU time without a benefit.
    "-XX:TieredStopAtLevel=1",
    # The default is a fifth of this size. It fills up quickly, and then compiled code is dropped and compiled again.
    "-XX:ReservedCodeCacheSize=256m",
    # Otherwise, about 20 000 of Spark's own classes are verified at every start.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # When reflection has called a method 15 times, Java 17 generates a class for it. This affects all objects that are
    # sent to a task.
    "-Dsun.reflect.inflationThreshold=2147483647",
)

SMALL_SPARK = {
    "spark.ui.enabled": "false",
    # The sink sets the number of tasks for tables. The remaining data is small.
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Code that is generated and compiled per statement only pays off with many rows, but these statements have few
    # rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    # A new plan after every stage, when sizes are known, does not pay off either.
    "spark.sql.adaptive.enabled": "false",
    # By default, Spark verifies its plans after every rule, which only helps developers of rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.driver.extraJavaOptions": " ".join(_JAVA),
    # Nothing else connects, and the machine's host name does not have to be resolvable.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
