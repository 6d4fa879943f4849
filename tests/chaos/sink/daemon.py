"""A replacement for `pyspark.daemon`: it forks workers that die where the environment says."""

from pyspark.daemon import manager

from tests.chaos.sink.points import arm

if __name__ == "__main__":
    arm("worker")
    manager()  # type: ignore[no-untyped-call]  # PySpark has no types for it
