"""Define the structure of tables, their names and their engines."""
