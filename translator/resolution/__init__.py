"""Convert the bytes of one message to the records to write: the single path that the service and every command use."""
