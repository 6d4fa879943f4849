"""Turn one message from bytes into the records to write: the single path that the service and every command use."""
