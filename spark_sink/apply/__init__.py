"""One micro-batch, from events to commits."""
