"""Start servers for tests and the demo on this machine: Kafka, Spark, a registry, an object store, and the product
itself.
"""
