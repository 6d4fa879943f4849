"""Model the state of a single row and its events in plain Python."""
