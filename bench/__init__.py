"""Benchmarks: `python -m bench.<name>`. docs/benchmarks.md has the results, and docs/benchmarks/ the methods."""
