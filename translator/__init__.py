"""Translate four change formats into one canonical envelope.

`message` defines what a dialect reads and returns. `dialects/` reads the formats, `translation/` contains the rules
that they share, `codecs/` writes bytes, and `service/` is the running process. Imports go in only one direction
(docs/architecture.md).
"""
