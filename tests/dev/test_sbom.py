"""The bill of materials adds the crates and one-line licences to what Syft finds."""

from __future__ import annotations

from typing import Any

import pytest

from dev.release.sbom import components_of, licence_of, licences

PACKAGES: list[Any] = [
    {"name": "native", "version": "0.1.0", "license": None},
    {"name": "pyo3", "version": "0.29.0", "license": "MIT OR Apache-2.0"},
    {"name": "serde", "version": "1.0.1", "license": "MIT/Apache-2.0"},
]


def test_crates() -> None:
    """Fetched crates are listed with checksums and SPDX licences. Our own crate is not listed."""
    pyo3, serde = components_of(PACKAGES, {"serde-1.0.1": "ab", "pyo3-0.29.0": "cd"})
    assert ("pkg:cargo/serde@1.0.1", [{"alg": "SHA-256", "content": "ab"}]) == (serde["purl"], serde["hashes"])
    assert [{"expression": "MIT OR Apache-2.0"}] == serde["licenses"]
    assert "pyo3" == pyo3["name"]


@pytest.mark.parametrize(
    ("stated", "line"),
    [
        ([{"license": {"id": "MIT"}}, {"license": {"name": "Kazlib"}}], "MIT AND Kazlib"),
        ([{"expression": "MIT OR Apache-2.0"}], "MIT OR Apache-2.0"),
        ([{"license": {"name": "The whole\n text"}}], "The whole text"),
        ([{"license": {"name": ""}}], "not stated"),
        ([], "not stated"),
    ],
)
def test_licence(stated: list[Any], line: str) -> None:
    """Ids, names and expressions become one line, and a missing licence is reported."""
    assert line == licence_of({"name": "a", "licenses": stated})


def test_silence_comes_first() -> None:
    """Packages without a licence come first, because somebody has to look it up."""
    table = licences([{"name": "b", "version": "2", "licenses": [{"license": {"id": "MIT"}}]}, {"name": "a"}])
    assert "not stated\ta\t\nMIT\tb\t2\n" == table
