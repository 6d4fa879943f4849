"""Translate four change formats into one canonical envelope.

`message` defines the input and output of a dialect, `dialects/` reads the formats, `translation/` contains the rules
common to all of them, `codecs/` writes bytes, and `service/` is the running process. Imports go in one direction only
(docs/architecture.md).
"""
