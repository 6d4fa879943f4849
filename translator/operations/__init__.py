"""Operations that run alongside the service. None of them joins its consumer group."""
