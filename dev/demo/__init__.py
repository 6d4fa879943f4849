"""The demo: a small shop, its five sources, and the report at the end."""
