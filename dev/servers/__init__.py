"""Servers that tests and the demo start on this machine: Kafka, Spark, a registry, an object store, and the product
itself.
"""
