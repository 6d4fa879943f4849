"""Run contestants against a real broker, warmed up and in turns."""
