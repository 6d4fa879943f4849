"""`python -m spark_sink`, and what spark-submit is given."""

from spark_sink.commands import main

if __name__ == "__main__":
    main()
