"""Readers that nobody here wrote, on topics that the service writes (docs/consumers.md)."""
