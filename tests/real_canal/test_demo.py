"""`make demo DEMO_ARGS=--real-canal`"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_canal.pipeline import PATIENCE

pytestmark = [pytest.mark.integration, pytest.mark.faults]


@pytest.mark.usefixtures("tools")
def test_the_demo_with_a_real_canal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dev.demo", "--real-canal", "--changes", "100", "--directory", tmp_path / "demo"]
    demo = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    said = demo.stdout.decode()
    assert 0 == demo.returncode, said
    for table in ("customers", "orders", "order_lines"):
        (told,) = [line for line in said.splitlines() if line.startswith(f"mariadb_shop.{table} in DuckDB")]
        assert told.endswith("equal to the shop, every cell")
