"""The fault matrix: real workers on real brokers, faults, and an account of every message.

`python -m tests.chaos --list` lists the cases (tests/chaos/cases.py), and `python -m tests.chaos CASE...` runs some.
"""
