"""Read the topics that the service writes with third-party programs (docs/consumers.md)."""
