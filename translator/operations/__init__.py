"""What operators run beside the service; none of it joins its consumer group."""
