"""Write expected.json of case folders, for review: `python -m tests.translator.dialects.write_expected CASE...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.translator.dialects.case import EXPECTED, outcome_of


def main(folders: list[str]) -> None:
    """Overwrite the files. Review the changes in the diff."""
    for folder in folders:
        path = Path(folder).resolve() / EXPECTED
        path.write_text(json.dumps(outcome_of(path.parent), indent=2, ensure_ascii=False) + "\n")
        print(path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {__doc__}")
    main(sys.argv[1:])
