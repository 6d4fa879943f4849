"""Benchmarks of single steps in this process, without a broker. They only measure CPU time."""
