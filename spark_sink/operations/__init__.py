"""What operators ask of a running sink, and what they see of it."""
