"""Execute the commands that operators send to a running sink, and show them the state of its tables."""
