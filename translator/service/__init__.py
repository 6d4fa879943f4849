"""The running service process."""
