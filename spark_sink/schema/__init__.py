"""Table structure, table names and engines."""
