"""Render a result as Markdown with pictures. This package measures nothing."""
