"""The sink killed at named points as real processes: the driver, its JVM and its workers together.

`python -m tests.chaos.sink` runs the long form (C2 of docs/sink-design.md).
"""
