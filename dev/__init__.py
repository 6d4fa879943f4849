"""Tools for contributors: Java, jars, a real Kafka broker, the demo. They are never shipped."""
