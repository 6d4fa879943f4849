"""The sink's settings."""
