"""Benchmarks of single steps in this process: no broker, processor time alone."""
