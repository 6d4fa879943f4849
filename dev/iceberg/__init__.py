"""Run Iceberg catalogs for tests, as real servers on this machine."""
