"""A result as Markdown with pictures. Nothing is measured here."""
