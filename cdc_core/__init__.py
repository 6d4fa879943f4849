"""The code that the translator and the sink share; it imports neither."""
