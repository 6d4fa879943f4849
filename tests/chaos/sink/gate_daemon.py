"""In the place of `spark_sink.worker_daemon`: workers are made from this process, and pass the gate."""

from pyspark.daemon import manager

from tests.chaos.sink.gate import arm

if __name__ == "__main__":
    arm()
    manager()  # type: ignore[no-untyped-call]  # PySpark has no types for it
