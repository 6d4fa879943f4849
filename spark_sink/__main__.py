"""`python -m spark_sink`, the program for spark-submit."""

from spark_sink.commands import main

if __name__ == "__main__":
    main()
