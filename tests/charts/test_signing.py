"""The rehearsal of a release's signatures, with cosign and a registry on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.go_program import GoProgramError
from dev.release.charts import package_chart
from dev.release.signing import COSIGN, CRANE, Signer, SigningError, _must_fail, rehearse


@pytest.fixture(autouse=True)
def _need_programs() -> None:
    try:
        for program in (COSIGN, CRANE):
            program.built()
    except GoProgramError as error:
        pytest.skip(f"{error}: signatures are NOT SHOWN")


def test_a_file_and_a_chart(tmp_path: Path) -> None:
    """A file and a chart are signed and verified, and remain unchanged."""
    file, work = tmp_path / "notes.txt", tmp_path / "work"
    file.write_text("notes")
    work.mkdir()
    rehearse(work, [file], [package_chart("translator", tmp_path)], {})
    assert "notes" == file.read_text()
    assert {"notes.txt.sigstore.json", "translator-0.1.0.tgz.sigstore.json"} <= {one.name for one in work.iterdir()}


def test_an_accepted_signature(tmp_path: Path) -> None:
    """If cosign accepts what it must reject, the rehearsal fails."""
    signer, file = Signer(tmp_path), tmp_path / "notes.txt"
    file.write_text("notes")
    signer.sign_file(file)
    bundle = tmp_path / "notes.txt.sigstore.json"
    verify = ("verify-blob", "--insecure-ignore-tlog", "--key", signer.public, "--bundle", bundle)
    with pytest.raises(SigningError, match=r"^cosign accepted the same file$"):
        _must_fail("the same file", *verify, file)
