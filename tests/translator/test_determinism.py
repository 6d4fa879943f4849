"""The same input gives the same bytes in another process, with another hash seed, and after other messages."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.translator.dialects.case import CASES, find_cases
from tests.translator.digests import ORDERS, digests
from translator.codecs import CODECS


def _by_process(order: str, seed: str) -> tuple[list[str], str]:
    """Return the digests of a new process, and the hash of one of its strings."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.translator.digests", order],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return ran.stdout.splitlines(), ran.stderr.splitlines()[-1]


def test_every_case_has_bytes() -> None:
    """The comparison below covers every case, and every codec for cases with events."""
    lines = [line.split() for line in digests("forward")]
    assert {str(case.relative_to(CASES)) for case in find_cases()} == {case for case, _, _ in lines}
    translated = {case.split("/")[0] for case, output, _ in lines if output == "avro"}
    assert {case.parent.name for case in find_cases()} == translated
    for codec in CODECS:
        assert {case for case, output, _ in lines if output == "avro"} == {
            c for c, output, _ in lines if output == codec
        }


@pytest.mark.parametrize("order", ORDERS)
def test_processes_and_hash_seeds(order: str) -> None:
    """Two processes with different hash seeds write what this one writes, in either message order."""
    (one, hash_one), (other, hash_other) = _by_process(order, "1"), _by_process(order, "4242")
    assert hash_one != hash_other
    assert digests("forward") == one == other
