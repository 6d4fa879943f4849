"""Operations that run alongside the service without joining its consumer group."""
