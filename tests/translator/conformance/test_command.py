"""`translator dialect`: a new plug-in, its scorecard, and what is not a plug-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.translator.commands._program import run, run_process

ROOT = Path(__file__).parents[3]


def test_a_new_plugin(tmp_path: Path) -> None:
    """It has the full scorecard, and its own test passes."""
    made = run("dialect", "new", "shop", "--into", str(tmp_path / "new"))
    assert 0 == made.returncode, made.stderr
    folder = tmp_path / "new" / "cdc-dialect-shop"
    assert "*.egg-info/" in (folder / ".gitignore").read_text().splitlines()
    ran = run_process("dialect", "test", str(folder))
    assert 0 == ran.returncode, ran.stdout
    first, *lines = ran.stdout.splitlines()
    assert "shop (cdc-dialect-shop 0.1.0)" == first
    assert 9 == len(lines) == sum(line.startswith("passed  ") for line in lines)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    own = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert 0 == own.returncode, own.stdout


@pytest.mark.parametrize("name", ["translator", "core"])
def test_names_of_the_product(name: str, tmp_path: Path) -> None:
    """A new plug-in has neither the distribution nor a module of the translator."""
    made = run("dialect", "new", name, "--into", str(tmp_path))
    assert 0 == made.returncode, made.stderr
    project = tomllib.loads((tmp_path / f"cdc-dialect-{name}" / "pyproject.toml").read_text())
    assert f"cdc-dialect-{name}" == project["project"]["name"]
    assert [f"cdc_dialect_{name}"] == project["tool"]["setuptools"]["py-modules"]


def test_a_property_that_fails(tmp_path: Path) -> None:
    """The exit code is 1, and --write adds only what is missing."""
    run("dialect", "new", "shop", "--into", str(tmp_path))
    folder = tmp_path / "cdc-dialect-shop"
    wrong, new = folder / "cases" / "insert.json", folder / "cases" / "new.json"
    wrong.write_text(wrong.read_text().replace('"4.50"', '"4.5"'))
    message = '{"op": "insert", "table": "t", "new": {"id": 1.10}}'
    new.write_text(f'{{\n  "messages": [\n    {{"value": {message}}}\n  ]\n}}\n')
    ran = run_process("dialect", "test", "--write", str(folder))
    assert 1 == ran.returncode
    assert (
        "failed          golden cases: case insert, message 1: event 1 differs in after. Correct the plug-in"
        in ran.stdout
    )
    assert "translator: wrote the results of case new: check them\n" == ran.stderr
    assert message in new.read_text()
    assert {"id": "1.10"} == json.loads(new.read_text())["expected"][0][0]["after"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new", "Shop"), "'Shop' cannot be the name of a dialect"),
        (("new", "shop_"), "'shop_' cannot be the name of a dialect"),
        (("new", "canal"), "dialect canal is built in"),
        (("new", "twice"), "cdc-dialect-twice already exists and was not changed"),
        (("test", "nothing"), "nothing/pyproject.toml cannot be read: No such file or directory"),
        (("test", "cdc-dialect-twice"), "cdc-dialect-twice/cases contains no case"),
        (("test", "cdc-dialect-two"), "has 2 entry points"),
        (("test", "cdc-dialect-damaged"), "is not a distribution's project file: TOMLDecodeError"),
        (("test", "cdc-dialect-odd"), "cases/odd.json: Object contains unknown field `mesages`"),
        (("test", "cdc-dialect-list"), "is list; expected a table"),
        (("test", "cdc-dialect-folder"), "cases/folder.json cannot be read: Is a directory"),
        (("test", "--write", "cdc-dialect-null"), "cases/null.json: Expected `array`, got `null` - at `$.expected`"),
        (("test", "cdc-dialect-few"), "expected at least one message, and as many results"),
    ],
)
def test_mistakes(arguments: tuple[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the call has the exit code 2 and says what was expected."""
    monkeypatch.chdir(tmp_path)
    for name in ("twice", "two", "damaged", "odd", "few", "list", "folder", "null"):
        run("dialect", "new", name)
    for file in Path("cdc-dialect-twice/cases").iterdir():
        file.unlink()
    Path("cdc-dialect-two/pyproject.toml").write_text(
        Path("cdc-dialect-two/pyproject.toml").read_text().replace('two = "', 'other = "x:y"\ntwo = "')
    )
    Path("cdc-dialect-damaged/pyproject.toml").write_text("[")
    Path("cdc-dialect-odd/cases/odd.json").write_text('{"mesages": []}')
    Path("cdc-dialect-list/pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.entry-points]\n"cdc_translator.dialects" = ["x"]\n'
    )
    Path("cdc-dialect-folder/cases/folder.json").mkdir()
    Path("cdc-dialect-null/cases/null.json").write_text('{"messages": [{"value": {}}], "expected": null}')
    Path("cdc-dialect-few/cases/few.json").write_text('{"messages": [{"value": {}}], "expected": []}')
    ran = run("dialect", *arguments)
    assert (2, True) == (ran.returncode, said in ran.stderr), ran.stderr
