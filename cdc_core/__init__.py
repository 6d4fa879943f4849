"""Code shared by the translator and the sink. It imports neither of them."""
