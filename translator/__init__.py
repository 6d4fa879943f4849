"""Four change formats in, one canonical envelope out.

`message` is what goes into a dialect and comes out of it, `dialects/` reads the formats, `translation/` holds the rules
common to all of them, `codecs/` writes bytes, `service/` is the running process. Arrows point one way
(docs/architecture.md).
"""
