"""Commands that operators send to a running sink, and what they can see of it."""
