"""The Delta Lake format."""
