"""The tools of a contributor's machine around the product: Java, jars, a real Kafka broker, the demo. Never shipped."""
