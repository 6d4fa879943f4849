"""Process one micro-batch, from events to commits."""
