"""Iceberg tables: workers read them through pyiceberg, and Spark writes them."""
