"""The build context contains what the Dockerfile copies. `make image-check` builds the images."""

from __future__ import annotations

import re

from dev.release.images import ROOT, TARGETS


def test_everything_that_is_copied_is_in_the_context() -> None:
    """.dockerignore admits every copied file. A build would fail at the first missing one."""
    text = (ROOT / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"pyproject.toml", "dev/image_entry.sh"} <= copied
    assert [] == sorted(name for name in copied if not any(f"{name}/".startswith(f"{entry}/") for entry in let_in))
    assert [] == sorted(name for name in copied if not (ROOT / name).exists())


def test_targets() -> None:
    """Every image that is built is a stage of the Dockerfile."""
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert {*TARGETS} <= stages
