"""An archive of the broker's classes as the JVM has them in memory, kept beside its jars: a start takes half the time.

Made once for each Java and each state of the jars, in a run of the program that has no other purpose. Where that fails,
programs start without it, and nobody is told: it is a matter of seconds.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.jars import only_one


def archive_options(executable: Path, jars: Sequence[Path], train: Callable[[list[str]], None]) -> list[str]:
    """Return the options with which a JVM uses the archive of these jars, after having made it if there is none.

    Args:
        jars: the class path; the archive is beside the folder of the first.
        train: runs the program with further JVM options, and ends it in order.
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
    """Leaves an archive, or an empty file, with which nobody tries again."""
    if archive.exists():  # another process made it while this one waited
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
    """Return what changes with the Java or with any jar: the JVM refuses an archive of others."""
    stamps = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in (executable.resolve(), *jars)]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:12]
