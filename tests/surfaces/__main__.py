"""`python -m tests.surfaces` writes the texts of all surfaces."""

from tests.surfaces.texts import SURFACES, file, text

if __name__ == "__main__":
    for surface in SURFACES:
        file(surface).write_text(text(surface), encoding="utf-8")
