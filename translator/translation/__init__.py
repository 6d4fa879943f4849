"""Turn decoded changes into events: pure functions without clock or I/O."""
