"""The processing of one micro-batch, from events to commits."""
