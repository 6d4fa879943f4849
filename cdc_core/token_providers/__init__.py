"""The built-in token providers. Each provider imports its cloud's library only when it is configured."""
