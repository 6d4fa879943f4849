"""Read dead letters and translate their messages again."""
