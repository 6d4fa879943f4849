"""What a contributor's machine needs around the product: Java, jars, a real Kafka broker, the demo. Never shipped."""
