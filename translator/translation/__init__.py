"""From decoded changes to events: pure, without clock and I/O."""
