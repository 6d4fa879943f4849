"""Third-party readers for the topics that the service writes (docs/consumers.md)."""
