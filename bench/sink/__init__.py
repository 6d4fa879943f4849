"""Measure the sink from Kafka to Delta tables, compared with the pattern of Delta's documentation: `python -m
bench.sink`.
"""
