"""Dead letters: reading them, and translating their messages again."""
