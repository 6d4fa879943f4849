"""Keep an archive of the broker's classes in the JVM's memory format, next to the jars. The archive halves the startup
time.

The archive is created once per Java version and set of jars, in a separate run of the program. If this fails, programs
start without the archive and without a message, because startup then only takes a few seconds longer.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.jars import only_one


def archive_options(executable: Path, jars: Sequence[Path], train: Callable[[list[str]], None]) -> list[str]:
    """Return the JVM options for using the archive of these jars. Create the archive if necessary.

    Args:
        jars: the class path. The archive is next to the first jar's folder.
        train: runs the program with additional JVM options, and stops it gracefully.
    """
    archive = jars[0].parent.parent / f"classes-{_identity(executable, jars)}.jsa"
    try:
        if not archive.exists():
            with only_one(archive):
                _make(archive, train)
        useful = archive.stat().st_size > 0
    except OSError:
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable", "-Xlog:all=error:stderr"] if useful else []


def _make(archive: Path, train: Callable[[list[str]], None]) -> None:
    """Write an archive, or an empty file so that no other attempt is made."""
    if archive.exists():  # another process created the archive while this process waited
        return
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    try:
        train([f"-XX:ArchiveClassesAtExit={fresh}"])
    except Exception:
        fresh.unlink(missing_ok=True)
    if not fresh.exists():
        fresh.touch()
    fresh.rename(archive)


def _identity(executable: Path, jars: Sequence[Path]) -> str:
    """Return a fingerprint of the Java version and all jars. The JVM rejects an archive that was made for a different
    Java or different jars.
    """
    stamps = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in (executable.resolve(), *jars)]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:12]
