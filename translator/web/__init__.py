"""Web pages: the playground, which needs no broker, and the code that serves and protects pages."""
