"""A replacement for `spark_sink.spark.worker_daemon`: it forks workers that pass the gate."""

from spark_sink.spark import worker_daemon
from tests.chaos.sink.gate import arm

if __name__ == "__main__":
    arm()
    worker_daemon.main()
