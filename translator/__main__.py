"""Entry point of `python -m translator`."""

from translator.commands import main

main()
