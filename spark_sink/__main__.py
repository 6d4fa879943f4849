"""`python -m spark_sink`, the program that spark-submit runs."""

from spark_sink.commands import main

if __name__ == "__main__":
    main()
