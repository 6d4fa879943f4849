"""Convert the bytes of a message to the records to write. The service and every command use this single path."""
