"""One row and its events, in plain Python."""
