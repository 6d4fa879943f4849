"""Tools for contributors, such as Java, jars, a real Kafka broker and the demo. These tools are never shipped."""
