"""Keep additional lists of jars, each for a few tests. The jars are downloaded into the user's cache when they are
first used, and verified against the checksums next to the list.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dev.jars import JarsError, cache, fetch, only_one, read_checksums
from dev.java import JavaError


class WrongJarsError(Exception):
    """Raised if the jars in the cache differ from the list."""


@dataclass(frozen=True)
class JarList:
    """A list of jars. Each of its configurations has its own folder, whose jars form one class path.

    Args:
        module: the module whose command renews the checksums.
        wanted: the list, in Ivy's format. The checksums are next to it, in a file with the suffix `.sha256`.
        what: describes the jars in messages.
    """

    module: str
    wanted: Path
    configurations: tuple[str, ...]
    what: str

    @property
    def checksums(self) -> Path:
        return self.wanted.with_suffix(".sha256")

    def folder(self, *, write_checksums: bool = False) -> Path:
        """Return the folder that contains the configurations.

        Args:
            write_checksums: whether to download the jars again, and write the checksums. Use this after changing the
                list.

        Raises:
            JarsError: the jars could not be downloaded.
            WrongJarsError: the jars differ from the checksums.
        """
        name = self.module.rpartition(".")[2]
        directory = cache() / f"{name}-{hashlib.sha256(self.wanted.read_bytes()).hexdigest()[:12]}"
        with only_one(directory):
            if write_checksums or not directory.is_dir():
                with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
                    fetch(self.wanted, self.configurations, ("jar", "bundle"), Path(temporary), self.what)
                    shutil.rmtree(directory, ignore_errors=True)
                    (Path(temporary) / "jars").rename(directory)
            self._verify(directory, write_checksums)
        return directory

    def _verify(self, directory: Path, write_checksums: bool) -> None:
        found = {f"{path.parent.name}/{path.name}": path for path in sorted(directory.glob("*/*.jar"))}
        sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
        if write_checksums:
            self.checksums.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        elif sums != read_checksums(self.checksums):
            raise WrongJarsError(
                f"the jars in {directory} differ from {self.checksums.name}: delete that folder. If {self.wanted.name} "
                f"was changed on purpose, renew the checksums: .venv/bin/python -m {self.module} --write-checksums"
            )

    def main(self) -> int:
        """Run the command of a list's module: download the jars, print their folder, and return the exit code."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=f"Download {self.what}.")
        parser.add_argument(
            "--write-checksums", action="store_true", help=f"Download them again and update {self.checksums.name}."
        )
        arguments = parser.parse_args()
        try:
            print(self.folder(write_checksums=arguments.write_checksums))
        except (JarsError, JavaError, WrongJarsError) as error:
            print(f"{self.module}: {error}", file=sys.stderr)
            return 1
        return 0
