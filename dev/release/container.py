"""`python -m dev.release.container FOLDER TARGET [ARGUMENTS]` runs an image from `dev.release.images`, just as the
charts do.

The container is started by runc, the runtime behind most container engines. It runs as the image's user, without
capabilities, on a read-only root. The process can write to /tmp and to FOLDER, which has the same path inside the
container. It shares this machine's network. As in a pod, the process is the first one in its namespace. Signals sent to
this program reach the process, and this program returns the process's exit code.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dev.release.charts import FOLDER as CHARTS
from dev.release.images import TARGETS, BuiltImage, ImageError, built

_TMP = "/tmp"  # noqa: S108 - the container's own


def command(image: BuiltImage, folder: Path, arguments: Sequence[str]) -> list[str]:
    """Write the runc bundle into a folder in `folder`, and return the command for one run."""
    name = f"cdc-{image.target}-{uuid.uuid4().hex[:8]}"
    bundle = folder / f".{name}"
    bundle.mkdir()
    # The file is needed because processes, especially Java, resolve their own host name. Container engines create it,
    # too.
    (bundle / "hosts").write_text(f"127.0.0.1 localhost {name}\n")
    (bundle / "config.json").write_text(json.dumps(_specification(image, folder, bundle, name, arguments)))
    return ["runc", "run", "--bundle", str(bundle), name]


def _specification(
    image: BuiltImage, folder: Path, bundle: Path, name: str, arguments: Sequence[str]
) -> dict[str, Any]:
    """Return the container as an OCI runtime specification."""
    user, group = (int(number) for number in image.settings["User"].split(":"))
    return {
        "ociVersion": "1.0.0",
        "hostname": name,
        "process": {
            "user": {"uid": user, "gid": group},
            "args": [*image.settings["Entrypoint"], *(arguments or image.settings["Cmd"])],
            "env": image.settings["Env"],
            "cwd": image.settings.get("WorkingDir") or "/",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": str(image.root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": _TMP, "type": "tmpfs", "source": "tmpfs", "options": _tmp_options(image.target)},
            _bound(Path("/etc/hosts"), bundle / "hosts", "ro"),
            _bound(Path("/etc/resolv.conf"), Path("/etc/resolv.conf"), "ro"),
            _bound(folder, folder, "rw"),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }


def _bound(inside: Path, outside: Path, way: str) -> dict[str, Any]:
    return {"destination": str(inside), "type": "bind", "source": str(outside), "options": ["bind", way]}


def _tmp_options(target: str) -> list[str]:
    """Return the mount options for /tmp, with the size that the chart for the same program sets."""
    size: str = yaml.safe_load((CHARTS / target / "values.yaml").read_text())["tmpSizeLimit"]
    return ["nosuid", "nodev", "mode=1777", f"size={size.removesuffix('i')}"]


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2 or arguments[1] not in TARGETS:
        print(__doc__, file=sys.stderr)
        return 2
    folder, target, *rest = arguments
    try:
        image = built(target)
    except ImageError as error:
        print(f"container: {error}", file=sys.stderr)
        return 1
    run = command(image, Path(folder).resolve(), rest)
    return os.execvp(run[0], run)  # noqa: S606 - no shell is what is wanted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
