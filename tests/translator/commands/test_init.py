"""`translator init` turns topics of a real broker, or files, into a configuration that `check` accepts."""

import subprocess
import sys
from pathlib import Path

import yaml

from tests.translator.commands import _program
from tests.translator.commands._bench import Bench, row


def test_topics(shop: Bench) -> None:
    """It reads the oldest and newest records of each partition without joining a group, and the file is valid."""
    shop.feed([b'{"old": "and odd"}', *(row(number) for number in range(50))])
    shop.feed([row(60), None], 1)
    out = shop.directory / "proposed.yaml"
    kafka = f"bootstrap_servers={shop.client['bootstrap.servers']}"
    ran = _program.run("init", "--kafka", kafka, "--count", "8", "-o", str(out), f"{shop.raw[:-1]}?")
    assert 0 == ran.returncode, ran.stderr
    # Two records from each end of the first partition, and all of the other, one of which has no value.
    assert f"translator: {shop.raw}: canal (certain), 5 messages, 1 option to confirm" in ran.stderr
    (source,) = yaml.safe_load(out.read_text())["sources"]
    assert ("canal", [shop.raw], {"profile": "auto"}) == (source["dialect"], source["topics"], source["options"])
    assert "1 dead letter MISSING_FIELD" in out.read_text()
    assert 0 == _program.run("check", "-c", str(out)).returncode
    again = _program.run("init", "--kafka", kafka, "-o", str(out), shop.raw)
    assert (2, f"translator: {out} already exists and was not changed; choose another file with -o\n") == (
        again.returncode,
        again.stderr,
    )
    missing = _program.run("init", "--kafka", kafka, "-o", "-", "nothing-such-*")
    assert (2, "translator: topic nothing-such-* does not exist or is not visible to this user\n") == (
        missing.returncode,
        missing.stderr,
    )


def test_files(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_bytes(row(1) + b"\n" + row(2) + b"\n")
    ran = _program.run("init", "--file", str(tmp_path / "orders.jsonl"), "-o", "-", "--group", "g")
    assert 0 == ran.returncode, ran.stderr
    told = yaml.safe_load(ran.stdout)
    assert ("g", ["orders"]) == (told["group"], told["sources"][0]["topics"])


def test_a_call_says_where_to_look(tmp_path: Path) -> None:
    assert 2 == _program.run("init", "-o", "-").returncode
    ran = _program.run("init", "--kafka", "bootstrap_server=x", "-o", str(tmp_path / "x.yaml"), "t")
    assert (2, "did you mean bootstrap_servers?" in ran.stderr) == (ran.returncode, True)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_bytes(row(1))
    output = tmp_path / "none" / "x.yaml"
    ran = _program.run("init", "--file", str(tmp_path / "orders.jsonl"), "-o", str(output))
    assert (2, f"translator: {output}: the folder {output.parent} does not exist\n") == (ran.returncode, ran.stderr)


_FULL = """
import resource, signal, sys
from translator.commands import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
sys.argv = ["translator", *sys.argv[1:]]
main()
"""


def test_a_disk_without_room(tmp_path: Path) -> None:
    """No part of a file is left, so the next run is not rejected because of it."""
    (tmp_path / "orders.jsonl").write_bytes(row(1))
    output = tmp_path / "x.yaml"
    command = [sys.executable, "-B", "-c", _FULL, "init", "--file", str(tmp_path / "orders.jsonl"), "-o", str(output)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert (1, False) == (ran.returncode, output.exists())
    assert f"translator: cannot write {output}: File too large\n" == ran.stderr


def test_without_a_source_nothing_is_written(tmp_path: Path) -> None:
    """A file without sources would be invalid."""
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "other.jsonl").write_bytes(b'{"a": 1}')
    for name in ("empty", "other"):
        output = tmp_path / f"{name}.yaml"
        ran = _program.run("init", "--file", str(tmp_path / f"{name}.jsonl"), "-o", str(output))
        assert (1, False) == (ran.returncode, output.exists())
        assert ran.stderr.startswith("translator: nothing was written, because no source was recognized: ")
