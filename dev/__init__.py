"""Provide tools for contributors: Java, jars, a real Kafka broker, the demo and more. These tools are never shipped."""
