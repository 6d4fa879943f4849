"""Table formats behind one protocol."""
