"""Four change formats in, one canonical envelope out.

`message` and `envelope` are what goes in and what comes out, `dialects/` reads the formats, `translate` holds the
rules common to all of them, `codecs/` writes bytes, `runtime/` is Kafka. Arrows point one way (docs/architecture.md).
"""
