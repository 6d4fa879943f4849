"""Turn decoded changes into events with pure functions. They use neither a clock nor I/O."""
