"""Table formats behind a common protocol."""
