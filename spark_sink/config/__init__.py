"""Settings of the sink."""
