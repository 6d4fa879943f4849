"""Benchmarks: `python -m bench.<name>`. How they measure, and what they found: docs/benchmarks.md."""
