"""`spark-sink run` with a gate before its merges."""

from spark_sink.commands import main
from tests.chaos.sink.gate import arm_merges

if __name__ == "__main__":
    arm_merges()
    main()
