"""Measure the sink from Kafka to Delta tables, and compare it with the pattern in Delta's documentation: `python -m
bench.sink`.
"""
