"""What the Dockerfile copies gets into the context of its build; `make image-check` builds the images."""

from __future__ import annotations

import re

from dev.release.images import ROOT, TARGETS


def test_everything_that_is_copied_is_in_the_context() -> None:
    """.dockerignore leaves out whatever it does not name, and a build would end at the first file that is missing."""
    text = (ROOT / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"pyproject.toml", "dev/image_entry.sh"} <= copied
    assert [] == sorted(name for name in copied if not any(f"{name}/".startswith(f"{entry}/") for entry in let_in))
    assert [] == sorted(name for name in copied if not (ROOT / name).exists())


def test_targets() -> None:
    """The images that are built are stages of the Dockerfile."""
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert {*TARGETS} <= stages
