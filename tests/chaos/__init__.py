"""The fault matrix: real workers on real brokers, things that are killed, and a count of what came of every message.

`python -m tests.chaos --list` names the cases (tests/chaos/cases.py), `python -m tests.chaos CASE...` runs some.
"""
