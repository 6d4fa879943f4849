"""How plug-ins are found: by name, without a search for built-in dialects, and never in place of one."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.translator.plugins.installed import PAIRS, install
from translator import dialects
from translator.commands import cli
from translator.errors import ConfigError
from translator.installed_plugins import BUILT_IN
from translator.message import Changes, Message, Setup
from translator.web import playground

ROOT = Path(__file__).parents[3]


def build(name: str = "pairs", **options: Any) -> Any:
    return dialects.build(name, Setup("s"), options)


def error_of(name: str = "pairs", **options: Any) -> str:
    with pytest.raises(ConfigError) as error:
        build(name, **options)
    return str(error.value)


def test_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution's dialect is built with its own options, which the translator has checked."""
    install(tmp_path, monkeypatch)
    outcome = build(table="x").decode(Message("t", 0, 0, 0, None, b'{"id": 1}'))
    assert isinstance(outcome, Changes)
    assert "x" == outcome.changes[0].table.table  # type: ignore[union-attr]
    assert "pairs: unknown option 'tabel' (did you mean table?); allowed: table" == error_of(tabel="x")


def test_built_in_dialects_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the installed distributions while all sources name built-in dialects."""

    def search(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("cdc_core.installed_plugins.entry_points", search)
    for name in dialects.DIALECTS:
        assert name == build(name).name
    assert [] == dialects.plugins_among(dialects.DIALECTS)


def test_built_in_dialects_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "canal")
    assert type(build("canal")).__module__.startswith("translator.")
    assert [] == dialects.installed()


def test_the_entry_points_of_built_in_dialects() -> None:
    """The built-in dialects are offered like plug-ins: each entry point refers to the object in the table."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {"cdc_translator.dialects"} == set(declared)
    loaded = {
        name: metadata.EntryPoint(name, value, "g").load()
        for name, value in declared["cdc_translator.dialects"].items()
    }
    assert loaded == dialects.DIALECTS


def test_two_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    install(tmp_path, monkeypatch, distribution="other-pairs")
    text = "dialect pairs is offered by several distributions: cdc-pairs 1.2 and other-pairs 1.2. Uninstall all but one"
    assert text == error_of()


def test_another_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, api=2)
    assert error_of() == (
        "dialect pairs (cdc-pairs 1.2) was written for version 2 of the dialect interface, but this translator has "
        "version 1. Install a release of cdc-pairs for version 1, or a translator with version 2 "
        "(docs/dialects/your-own.md)"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_the_kind", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("PLUGIN = 7", "the entry point refers to int instead of a DialectPlugin"),
        ("OTHER = 7", "AttributeError"),
        (PAIRS.replace("build=Pairs", "build=lambda setup, options: 1 / 0"), "cannot be built: ZeroDivisionError"),
        (PAIRS.replace("build=Pairs", "build=lambda setup, options: 7"), "with the name None; expected 'pairs'"),
        (PAIRS.replace('PLUGIN = DialectPlugin(name="@NAME@"', 'PLUGIN = DialectPlugin(name="x"'), "is named 'x'"),
        ("raise SystemExit(9)", "cannot be loaded from cdc_pairs:PLUGIN: SystemExit: 9"),
        (PAIRS.replace("api=@API@", "api=True"), "was written for version True"),
        (PAIRS.replace("options=Options", "options=dict"), "options is the class dict; expected a subclass of"),
        (PAIRS.replace("options=Options", "options=None"), "options is NoneType; expected a subclass of"),
        (PAIRS.replace("build=Pairs", "build=None"), "build is NoneType; expected a function or a class"),
        (PAIRS.replace("@MORE@", ", recognizer=propose"), "recognizer is function; expected a Recognizer"),
        (PAIRS.replace("@MORE@", ", recognizer=Recognizer((1,), propose)"), "recognizer is Recognizer; expected a"),
        (PAIRS.replace("@MORE@", ", masked_value=1"), "masked_value is int; expected a function or None"),
        (PAIRS.replace("build=Pairs", "build=lambda setup, options: exit(3)"), "cannot be built: SystemExit in "),
        (PAIRS.replace("def decode(", "def decoed("), "build returned a dialect without the method decode"),
        (PAIRS.replace("name = ", "native_position = '('; name = "), "native_position is not a regular expression"),
        (PAIRS.replace("name = ", "native_position = 5; name = "), "native_position is not a regular expression"),
        (PAIRS.replace("name = ", "learns = 5; name = "), "learns is int; expected bool"),
        (PAIRS.replace("name = ", "learns = property(lambda self: 1 / 0); name = "), "cannot be built: ZeroDivision"),
    ],
)
def test_a_broken_plugin(code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, code=code)
    assert said in error_of()


def test_an_error_does_not_quote_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option can be a password. The error names a line of the plug-in instead."""
    code = PAIRS.replace("build=Pairs", "build=lambda setup, options: int(options.table)")
    install(tmp_path, monkeypatch, code=code)
    text = error_of(table="hunter2")
    assert ("ValueError in " in text, "hunter2" in text) == (True, False)


@pytest.mark.parametrize(
    ("entries", "metadata_text", "said"),
    [
        ("[console_scripts]\nnonsense\n", "Name: x\nVersion: 1\n", "the installed plug-ins cannot be listed"),
        ("[cdc_translator.dialects]\nx = m:P\n", "Version: 1\n", None),
        ("[cdc_translator.dialects]\nx = m:P\n", "Name: x\n", "dialect x (x unknown)"),
        ("[cdc_translator.dialects]\nx = \n", "Name: x\nVersion: 1\n", "dialect x (x 1)"),
    ],
)
def test_damaged_metadata(
    entries: str,
    metadata_text: str,
    said: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--version` and `init` work next to any distribution, and a source gets an error for the operator."""
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{metadata_text}")
    (info / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    cli(["--version"], standalone_mode=False)
    assert (said or "") in capsys.readouterr().out
    warnings: list[str] = []
    assert set(dialects.DIALECTS) == set(dialects.with_recognizer(warnings.append))
    assert 1 == len(warnings)
    error_of("x")


def test_the_playground_loads_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor chooses only among the dialects that the page offers."""
    install(tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match="unknown dialect 'pairs'"):
        playground.answer(playground.PastedMessage('{"id": 1}', dialect="pairs"))


def test_an_unknown_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists the plug-ins, too."""
    install(tmp_path, monkeypatch)
    text = "unknown dialect 'piars' (did you mean pairs?); allowed: canal, dts_avro, pairs, qlik, shareplex"
    assert text == error_of("piars")


def test_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` loads the plug-ins of its sources, and only those."""
    install(tmp_path, monkeypatch, api=2)
    install(tmp_path, monkeypatch, "others", distribution="cdc-others")
    config = tmp_path / "c.yaml"
    text = (
        "group: g\nkafka: {{bootstrap_servers: b:1}}\noutput: {{topic: t}}\n"
        "sources: [{{name: s, dialect: {}, topics: [r]}}]"
    )
    config.write_text(text.format("pairs"))
    with pytest.raises(ConfigError, match=r"sources\[0\].*version 2 of the dialect interface"):
        cli(["check", "-c", str(config)], standalone_mode=False)
    config.write_text(text.format("others, options: {tabel: x}"))
    with pytest.raises(ConfigError, match=r"sources\[0\] \(s\)\.options: others: unknown option 'tabel'"):
        cli(["check", "-c", str(config)], standalone_mode=False)
    config.write_text(f"timing: {{stuck: 30}}\n{text.format('others')}")
    with pytest.raises(ConfigError, match=r"set timing\.stuck to more than 30"):
        cli(["check", "-c", str(config)], standalone_mode=False)
    config.write_text(text.format("others"))
    cli(["check", "-c", str(config)], standalone_mode=False)
    assert "ok, 1 source(s)" in capsys.readouterr().out


def test_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    install(tmp_path, monkeypatch)
    cli(["--version"], standalone_mode=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("translator, version ")
    assert "dialect pairs (cdc-pairs 1.2)" == second


def test_plugins_among(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` and `cdc_build_info` name the plug-ins that the sources use."""
    install(tmp_path, monkeypatch)
    install(tmp_path, monkeypatch, "others", distribution="cdc-others")
    assert ["pairs (cdc-pairs 1.2)"] == [*map(str, dialects.plugins_among(["canal", "pairs"]))]


def test_start_loads_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the translator and building a built-in dialect loads no plug-in."""
    install(tmp_path, monkeypatch, code="raise SystemExit(9)")
    program = (
        "from translator import dialects; from translator.message import Setup; dialects.build('qlik', Setup('s'), {})"
    )
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, check=False)
    assert 0 == done.returncode


def test_the_names_of_the_built_in_dialects() -> None:
    """The names are known without the dialects, and in the same order."""
    assert BUILT_IN == (*dialects.DIALECTS,)
