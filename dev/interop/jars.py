"""The readers' jars, which are downloaded once into the user's cache and verified against jars.sha256."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from dev.jars import JarsError, cache, fetch, only_one, read_checksums

HERE = Path(__file__).parent
WANTED, CHECKSUMS = HERE / "jars.xml", HERE / "jars.sha256"
CONFIGURATIONS = ("flink", "connect")


def jars(*, write_checksums: bool = False) -> Path:
    """Return the folder with the jars, which has one subfolder per configuration.

    Args:
        write_checksums: whether to download the jars again, and write the list. Use this after a change of jars.xml.

    Raises:
        JarsError: the jars are not available, or differ from the list.
    """
    directory = cache() / f"interop-{hashlib.sha256(WANTED.read_bytes()).hexdigest()[:12]}"
    with only_one(directory):
        if write_checksums or not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
                fetch(WANTED, CONFIGURATIONS, ("jar", "bundle"), Path(temporary), "the readers' jars")
                shutil.rmtree(directory, ignore_errors=True)
                (Path(temporary) / "jars").rename(directory)
        found = {f"{path.parent.name}/{path.name}": path for path in sorted(directory.glob("*/*.jar"))}
        sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
        if write_checksums:
            CHECKSUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        elif sums != read_checksums(CHECKSUMS):
            raise JarsError(f"the jars in {directory} differ from dev/interop/jars.sha256: delete that folder")
    return directory
