"""Iceberg tables, which workers read through pyiceberg, and which Spark writes."""
