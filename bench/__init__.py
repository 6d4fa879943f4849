"""Benchmarks: `python -m bench.<name>`. docs/benchmarks.md has the results, docs/benchmarks/ the methods."""
