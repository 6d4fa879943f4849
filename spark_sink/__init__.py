"""The sink, which writes the canonical topic to lakehouse tables (docs/sink-design.md; docs/sink.md)."""
