"""From the canonical topic to lakehouse tables (design section 7; docs/sink.md)."""
