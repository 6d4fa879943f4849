"""Serve web pages: the playground, which needs no broker, and the code that protects pages."""
