"""Catalogs of Iceberg tables for tests: real servers on this machine."""
