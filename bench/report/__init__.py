"""Render a result as Markdown with pictures. This package does not measure anything."""
