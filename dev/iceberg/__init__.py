"""Catalogs of Iceberg tables, for the tests: real servers on this machine."""
