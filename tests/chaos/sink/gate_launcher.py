"""`spark-sink run` whose merges pass a gate."""

from spark_sink.commands import main
from tests.chaos.sink.gate import arm_merges

if __name__ == "__main__":
    arm_merges()
    main()
