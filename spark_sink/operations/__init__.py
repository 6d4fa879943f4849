"""Commands that operators send to a running sink, and the state that operators can see."""
