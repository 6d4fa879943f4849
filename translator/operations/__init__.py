"""Operations that are run beside the service; none joins its consumer group."""
