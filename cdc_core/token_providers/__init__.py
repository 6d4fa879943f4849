"""The built-in token providers. Each imports its cloud's library only when it is configured."""
