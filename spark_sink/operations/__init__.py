"""Commands that operators send to a running sink, and what operators can see of it."""
