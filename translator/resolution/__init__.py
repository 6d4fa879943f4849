"""One message from bytes to the records to write: the single path that the service and every command share."""
