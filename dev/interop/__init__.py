"""Third-party readers of the topics that the service writes (docs/consumers.md)."""
