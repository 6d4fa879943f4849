"""Benchmark each step in this process, without a broker. Only CPU time is measured."""
