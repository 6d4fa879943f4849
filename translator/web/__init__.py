"""Pages: the playground, which needs no broker, and what serves and guards it."""
