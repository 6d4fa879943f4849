"""The sink writes the canonical topic to lakehouse tables (docs/sink.md, docs/sink-design.md)."""
