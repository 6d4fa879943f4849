"""The settings of the sink."""
