"""Read Iceberg tables in workers through pyiceberg, and write them with Spark."""
