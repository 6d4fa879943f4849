"""Iceberg catalogs for tests: real servers on this machine."""
