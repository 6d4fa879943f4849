"""The settings of contestants are right, checked without running them. Failed installations are reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.contestants.base import Assignment
from bench.contestants.flink import FlinkSql, sql
from bench.contestants.peers import PROGRAMS, BareLoop
from bench.contestants.service import TranslatorService, way_of
from bench.generators import WRITERS, generate
from bench.generators.history import StreamSpec
from dev import environments
from dev.environments import NotInstalledError
from translator.config.settings import load

SPEC = StreamSpec(200, columns=14)


def _assignment(name: str, directory: Path) -> Assignment:
    return Assignment(name, SPEC, generate(name, SPEC), "127.0.0.1:9", "raw", "out", "group", directory, 2)


@pytest.mark.parametrize("name", WRITERS)
def test_the_settings_of_the_service_are_valid(name: str, tmp_path: Path) -> None:
    """Each process has its own file, and the translator accepts it."""
    launches = TranslatorService("t", "exactly_once", "debezium").launches(_assignment(name, tmp_path))
    paths = [Path(launch.command[-1]) for launch in launches]
    assert 2 == len({*paths})
    settings = [load(path) for path in paths]
    assert ["exactly_once"] * 2 == [one.delivery for one in settings]
    assert ["out", "out.debezium"] == settings[0].event_topics
    assert settings[0].web.port != settings[1].web.port


_TRANSLATES = """
import sys
from pathlib import Path
from plain_translation import dumps, load_job, loads, translation
translate = translation(load_job(sys.argv[1]))
for value in loads(Path(sys.argv[2]).read_bytes()):
    for key, event in translate(bytes.fromhex(value)):
        loads(event)
        print(key)
"""


@pytest.mark.parametrize("name", WRITERS)
def test_peers_read_every_format(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain translation produces an event for each change, under the row's key."""
    assignment = _assignment(name, tmp_path)
    monkeypatch.setattr(BareLoop, "_python", lambda self: Path(sys.executable))
    job = BareLoop().launches(assignment)[0].command[-1]
    values = tmp_path / "values.json"
    values.write_text(json.dumps([(message.value or b"").hex() for message in assignment.stream.messages]))
    command = [sys.executable, "-c", _TRANSLATES, job, values]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(PROGRAMS)})
    assert 200 == len(done.stdout.split()) == BareLoop().records(assignment.stream)
    assert all(key.isdigit() for key in done.stdout.split())


def test_flink_reads_and_writes_every_column(tmp_path: Path) -> None:
    """Flink reads and writes two tables with all columns, typed. An update becomes two records."""
    assignment = _assignment("canal", tmp_path)
    source, sink, insert = sql(assignment)
    for column in ("id", "updated_at", "order_no_1"):
        assert all(f"{column} " in text or f"{column}," in text for text in (source, sink, insert))
    assert "id BIGINT" in source
    assert "'format' = 'canal-json'" in source
    assert "'format' = 'debezium-json'" in sink
    updates = sum(message.updates for message in assignment.stream.messages)
    assert 200 + updates == FlinkSql().records(assignment.stream)


def test_what_pip_refuses_is_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error of pip is the reason. The next call tries again, because a partial environment is unusable."""
    monkeypatch.setenv("CDC_CACHE", str(tmp_path))
    calls: list[Any] = []

    def refuse(command: Any, name: str) -> str:
        calls.append(command)
        raise NotInstalledError(f"{name} could not be installed: no such package")

    monkeypatch.setattr(environments, "_run", refuse)
    for _ in range(2):
        with pytest.raises(NotInstalledError, match="peer could not be installed: no such package"):
            environments.environment("peer", ["nobody-has-it==1"])
    assert 2 == len(calls)


def test_the_way_is_what_the_program_says() -> None:
    """Without a report from the program, the path is Python."""
    assert "python" == way_of("translator, version 0.1.0\n")
    assert "native 0.1.0" == way_of("translator, version 0.1.0, native 0.1.0\n")
    assert "python (not built, as cargo is missing)" == way_of(
        "translator, version 0.1.0, python (not built, as cargo is missing)\n"
    )
