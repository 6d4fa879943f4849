"""Commands of operators to a running sink, and their view of it."""
