"""The table formats, behind a common protocol."""
