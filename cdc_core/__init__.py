"""Code shared by the translator and the sink. This package imports neither program."""
