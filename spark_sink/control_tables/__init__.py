"""The sink's own tables."""
