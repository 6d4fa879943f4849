"""What is said while a service is waited for, without a wait for the end of the patience."""


class Said(Exception):
    """Ends a wait with the first words about it. With a short patience instead, a busy machine may say none."""


def tell(line: str) -> None:
    """As `say` of what waits."""
    raise Said(line)
