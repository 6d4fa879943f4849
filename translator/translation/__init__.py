"""Turn decoded changes into events with pure functions, which use neither a clock nor I/O."""
