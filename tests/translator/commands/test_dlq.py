"""`translator dlq` on the real broker: its lists, what it shows and hides, and its exit codes."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.servers.broker import Broker
from tests.translator.commands import _program
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from translator.config.settings import Settings
from translator.operations.message_preview import preview

SECRET = "hush-hush"

Program = Callable[..., subprocess.CompletedProcess[str]]


class Desk:
    """A raw topic with dead letters, and the command."""

    def __init__(self, yard: Yard, directory: Path) -> None:
        self.yard = yard
        self._config = directory / "translator.yaml"
        self.settings = yard.settings(AMBIGUOUS)

    def run(
        self, *arguments: str, settings: Settings | None = None, program: Program = _program.run
    ) -> subprocess.CompletedProcess[str]:
        document = json.loads((settings or self.settings).model_dump_json())
        self._config.write_text(yaml.safe_dump(document))
        name, *others = arguments
        return program("dlq", name, "-c", str(self._config), *others)

    def listed(self, *arguments: str) -> list[Any]:
        ran = self.run("ls", "--json", *arguments)
        assert 0 == ran.returncode, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def desk(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Three letters: two with secrets in their rows, and one that is not JSON."""
    yard = Yard(broker.bootstrap)
    yard.feed(1, update(1, name=SECRET), update(2, name=SECRET), b'{"x": "' + SECRET.encode(), headers=[("h", b"1")])
    desk = Desk(yard, tmp_path_factory.mktemp("dlq"))
    yard.translate(desk.settings)
    yield desk
    yard.close()


def test_groups(desk: Desk) -> None:
    """The list has one line for each source, code and table, with counts and without row data."""
    ran = desk.run("ls")
    assert 0 == ran.returncode, ran.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ran.stdout.splitlines() if "shop" in line]
    assert [
        ["shop", "AMBIGUOUS_VARIANT", "shop.t", "", "2", "0", "0"],
        ["shop", "MALFORMED_JSON", "", "", "1", "0", "0"],
    ] == [row[:7] for row in rows]
    ambiguous, malformed = (line for line in ran.stdout.splitlines() if line.startswith("dlq show "))
    assert "an UPDATE has the same columns in both images" in ambiguous
    assert "not JSON" in malformed
    assert "letters=3 replayed=0 discarded=0" == ran.stdout.splitlines()[-1]
    assert SECRET not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ([], [0, 1, 2]),
        (["--code", "MALFORMED_JSON"], [2]),
        (["--code", "MALFORMED_JSON", "--code", "AMBIGUOUS_VARIANT", "--limit", "2"], [0, 1]),
        (["--source", "other"], []),
        (["--topic", "other"], []),
        (["--table", "shop.t"], [0, 1]),
        (["--since", "2001-01-01T00:00:00Z"], [0, 1, 2]),
        (["--until", "2001-01-01T00:00:00+02:00"], []),
    ],
)
def test_filters(desk: Desk, arguments: list[str], offsets: list[int]) -> None:
    """Each filter keeps the matching letters, and several filters keep those that match all."""
    assert offsets == [letter["origin"]["offset"] for letter in desk.listed(*arguments)]


def test_one_letter(desk: Desk, tmp_path: Path) -> None:
    """The command shows reason, origin and structure. Values go only to a requested file, which can be translated."""
    letter = desk.listed("--code", "AMBIGUOUS_VARIANT")[0]
    file = tmp_path / "one.jsonl"
    ran = desk.run("show", str(letter["partition"]), str(letter["offset"]), "--raw", str(file))
    assert 0 == ran.returncode, ran.stderr
    for line in ("cdc-error-code: AMBIGUOUS_VARIANT", "cdc-origin-partition: 1", "header h: 1 bytes"):
        assert line in ran.stdout.splitlines()
    assert f"      name: string of {len(SECRET)}" in ran.stdout.splitlines()
    assert SECRET not in ran.stdout + ran.stderr
    translated = _program.run("translate", "-d", "canal", "-o", "profile=ticdc", str(file))
    assert 0 == translated.returncode, translated.stderr
    told = json.loads(desk.run("show", "--json", str(letter["partition"]), str(letter["offset"])).stdout)
    assert (letter, {"h": 1}, 2) == (
        {name: told[name] for name in letter},
        told["header_bytes"],
        told["key_bytes"],
    )
    assert f"      name: string of {len(SECRET)}" in told["layout"]
    event = json.loads(translated.stdout)
    assert ({"id": 1, "name": SECRET}, 1) == (event["after"], event["origin"]["partition"])


def test_letters_of_a_source_with_masks(desk: Desk, tmp_path: Path) -> None:
    """Letters from before the masks show neither structure nor reason, and are not written to a file."""
    masked = desk.yard.settings(AMBIGUOUS, masks={"rules": [{"column": "name", "mask": "drop"}]})
    (letter, *_) = desk.listed()
    place = [str(letter["partition"]), str(letter["offset"])]
    shown = desk.run("show", *place, settings=masked)
    assert 0 == shown.returncode, shown.stderr
    assert "value: 2" in shown.stdout
    assert "bytes, not shown because columns of the source are masked" in shown.stdout
    assert "cdc-error-message" not in shown.stdout
    written = desk.run("show", "--raw", str(tmp_path / "raw"), *place, settings=masked)
    assert (2, False) == (written.returncode, (tmp_path / "raw").exists())
    assert "has masks and masks.messages: leave_out" in written.stderr
    ran = desk.run("ls", "--json", settings=masked)
    assert {None} == {json.loads(line)["reason"] for line in ran.stdout.splitlines()}


def test_a_dry_run_and_a_replay(desk: Desk, broker: Broker, tmp_path: Path) -> None:
    """A dry run reports what a replay does. A second replay has nothing left. Remaining letters are no failure."""
    yard = Yard(broker.bootstrap)
    own = Desk(yard, tmp_path)
    try:
        yard.feed(0, update(1, name=SECRET), b"{]")
        yard.translate(own.settings)
        clear = yard.settings(CLEAR)
        ways: list[tuple[list[str], Program]] = [
            ([], _program.run),
            (["--json"], _program.run_process),  # with the logging that it sets up
            (["--execute"], _program.run),
            (["--execute"], _program.run),
        ]
        said = [own.run("replay", *arguments, settings=clear, program=program) for arguments, program in ways]
    finally:
        yard.close()
    assert [0, 0, 0, 0] == [ran.returncode for ran in said], said[2].stderr
    told = json.loads(said.pop(1).stdout)
    assert (False, 0) == (told["executed"], told["before"])
    assert [("AMBIGUOUS_VARIANT", 1, 0), ("MALFORMED_JSON", 0, 1)] == [
        (group["code"], group["translated"], group["dead"]) for group in told["groups"]
    ]
    (still,) = told["still_dead"]
    assert still.pop("reason").startswith("canal: not JSON")
    assert {"source": "shop", "code": "MALFORMED_JSON", "now": "MALFORMED_JSON", "letters": 1} == still
    counts = "letters=2 translated=1 events=1 skipped=0 learned=0 dead=1 impossible=0 repeated=0 before=0"
    rest = "letters=1 translated=0 events=0 skipped=0 learned=0 dead=1 impossible=0 repeated=0 before=1"
    assert [f"dry run: {counts}", f"replayed: {counts}", f"replayed: {rest}"] == [
        ran.stdout.splitlines()[-1] for ran in said
    ]
    assert "shop: 1 letter with MALFORMED_JSON still cannot be translated, now with MALFORMED_JSON" in said[0].stdout
    assert ": canal: not JSON" in said[0].stdout
    assert SECRET not in "".join(ran.stdout + ran.stderr for ran in said)


def test_letters_that_are_given_up(broker: Broker, tmp_path: Path) -> None:
    """Discarded letters keep their reason and are neither replayed nor discarded again. A dry run marks none."""
    yard = Yard(broker.bootstrap)
    own = Desk(yard, tmp_path)
    why = ["--reason", " the source's test table "]
    try:
        yard.feed(0, update(1, name=SECRET), b"{]", b"{[")
        yard.translate(own.settings)
        dry, done, again = (
            own.run("discard", "--code", "MALFORMED_JSON", *why, *arguments)
            for arguments in ([], ["--execute"], ["--execute"])
        )
        empty = own.run("discard", "--reason", " ", "--execute")
        told = json.loads(own.run("discard", *why, "--json").stdout)
        replayed = own.run("replay", "--execute", settings=yard.settings(CLEAR))
        listed, shown = own.listed(), own.run("ls")
        malformed = next(letter for letter in listed if letter["code"] == "MALFORMED_JSON")
        one = own.run("show", str(malformed["partition"]), str(malformed["offset"]))
    finally:
        yard.close()
    assert (False, 2, ["AMBIGUOUS_VARIANT"]) == (
        told["executed"],
        told["before"],
        [letter["code"] for letter in told["letters"]],
    )
    assert [0, 0, 0, 2] == [ran.returncode for ran in (dry, done, again, empty)], done.stderr
    assert ["dry run: letters=2 before=0", "discarded: letters=2 before=0", "discarded: letters=0 before=2"] == [
        ran.stdout.splitlines()[-1] for ran in (dry, done, again)
    ]
    assert "letters=1 translated=1 events=1" in replayed.stdout
    assert [("AMBIGUOUS_VARIANT", True, None), *[("MALFORMED_JSON", False, "the source's test table")] * 2] == [
        (letter["code"], letter["replayed"], letter["discarded"]) for letter in listed
    ]
    assert "letters=3 replayed=1 discarded=2" == shown.stdout.splitlines()[-1]
    assert "  discarded: the source's test table" in shown.stdout.splitlines()
    assert "discarded: the source's test table" in one.stdout.splitlines()


def test_a_hold_of_which_all_is_given_up(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all letters of a hold are discarded, the next replay releases the table."""
    monkeypatch.setattr("translator.operations.dlq.replay.SILENCE", 0.0)  # no owner is running
    yard = Yard(broker.bootstrap)
    own = Desk(yard, tmp_path)
    wrong = yard.settings(AMBIGUOUS, on_error={"AMBIGUOUS_VARIANT": "hold_table"})
    try:
        yard.feed(0, update(1), update(2, both=False))
        yard.translate(wrong)
        given_up = own.run("discard", "--reason", "r", "--execute", settings=wrong)
        ended = own.run("replay", "--execute", settings=wrong)
    finally:
        yard.close()
    assert [0, 0] == [given_up.returncode, ended.returncode], ended.stderr
    assert "discarded: letters=2 before=0" in given_up.stdout
    assert "all letters have been replayed; the service releases the hold" in ended.stdout


def test_a_replay_that_leaves_a_table_held(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1, and the last line states the table and what to do. A dry run does not fail for it."""
    monkeypatch.setattr("translator.operations.dlq.replay.SILENCE", 0.0)  # no owner is running
    yard = Yard(broker.bootstrap)
    own = Desk(yard, tmp_path)
    hold = {"AMBIGUOUS_VARIANT": "hold_table"}
    wrong, clear = (yard.settings(options, on_error=hold) for options in (AMBIGUOUS, CLEAR))
    try:
        yard.feed(0, update(1), update(2, both=False))
        yard.translate(wrong)
        dry, blocked, done = (
            own.run("replay", *arguments, settings=settings)
            for arguments, settings in (([], wrong), (["--execute"], wrong), (["--execute"], clear))
        )
    finally:
        yard.close()
    table = f"table 'shop.t' of topic {yard.raw}, partition 0"
    assert [0, 1, 0] == [ran.returncode for ran in (dry, blocked, done)], done.stderr
    assert f"held: {table}, since offset 0 (AMBIGUOUS_VARIANT)" in blocked.stdout.splitlines()
    last = blocked.stderr.splitlines()[-1]
    assert last.startswith(f"translator: still held: {table} (offset 0, AMBIGUOUS_VARIANT). Fix the cause")
    assert "still held" not in dry.stderr + done.stderr
    assert f"{table}: all letters have been replayed; the service releases the hold" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ls", "--code", "MALFORMED"], "unknown code 'MALFORMED' (did you mean MALFORMED_JSON?)"),
        (["ls", "--since", "2026-01-01T00:00:00"], "has no time zone"),
        (["ls", "--until", "yesterday"], "'yesterday' is not a time such as"),
        (["show", "0", "999"], "no dead letter at partition 0, offset 999"),
    ],
)
def test_mistakes(desk: Desk, arguments: list[str], reason: str) -> None:
    """Mistakes lead to exit code 2 and an explanation."""
    ran = desk.run(*arguments)
    assert 2 == ran.returncode
    assert reason in ran.stderr


def test_without_a_dead_letter_topic(desk: Desk) -> None:
    """A configuration that was never run has no dead-letter topic. The error contains its name."""
    ran = desk.run("ls", settings=desk.yard.settings(AMBIGUOUS, output={"topic": "never-run"}))
    assert 2 == ran.returncode
    assert "never-run" in ran.stderr


def test_without_a_broker(desk: Desk, free_port: int) -> None:
    """Without a broker, it fails with exit code 1."""
    away = desk.yard.settings(
        AMBIGUOUS, kafka={"bootstrap_servers": f"127.0.0.1:{free_port}"}, timing={"broker_wait": 0}
    )
    assert [1, 1] == [desk.run(name, settings=away).returncode for name in ("ls", "replay")]


class TestPreview:
    @pytest.mark.parametrize(
        ("value", "lines"),
        [
            (None, ["null"]),
            (b"", ["0 bytes, not JSON, beginning with nothing"]),
            (b'"hush"', ["6 bytes, JSON: string of 4"]),
            (b"1234", ["4 bytes, JSON: number"]),
            (b"\x00\x00\x00\x00\x07hush", ["9 bytes, not JSON, beginning with 00 00 00 00 07"]),
            (
                b'{"a":[{"b":"hush"},true,null],"c":null}',
                [
                    "39 bytes, JSON: object of 2",
                    "  a: array of 3",
                    "    [0]: object of 1",
                    "      b: string of 4",
                    "    [1]: boolean",
                    "  c: null",
                ],
            ),
        ],
    )
    def test_structure(self, value: bytes | None, lines: list[str]) -> None:
        """The structure has names, types and lengths, the first items of an array, and the frame of other content."""
        assert lines == preview(value)

    def test_bounded(self) -> None:
        """The output stays short for a deep or wide hostile message, and contains no control characters."""
        wide = preview(json.dumps({f"\x1b[2J{number}": "x" for number in range(5_000)}).encode())
        assert (202, "  … and 4800 more members") == (len(wide), wide[-1])
        assert "\x1b" not in "".join(wide)
        deep = preview(b'{"a":' * 400 + b"1" + b"}" * 400)
        assert len(deep) < 20


def test_the_example_of_a_group_is_an_open_letter(broker: Broker, tmp_path: Path) -> None:
    """A letter that was replayed is not an example of what is left to do."""
    yard = Yard(broker.bootstrap)
    own = Desk(yard, tmp_path)
    try:
        yard.feed(0, update(1), update(2))
        yard.translate(own.settings)
        done = own.run("replay", "--execute", "--limit", "1", settings=yard.settings(CLEAR))
        assert 0 == done.returncode, done.stderr
        (example,) = [line for line in own.run("ls").stdout.splitlines() if line.startswith("dlq show ")]
        still_open = [letter for letter in own.listed() if not letter["replayed"]]
        places = [f"dlq show {letter['partition']} {letter['offset']}" for letter in still_open]
        assert [example.partition(":")[0]] == places
    finally:
        yard.close()


def test_the_origin_of_a_letter_is_not_its_place(desk: Desk) -> None:
    ran = desk.run("show", "crm.canal", "1", "21")
    assert 2 == ran.returncode
    assert "'crm.canal' is not a whole number of 0 or more; enter the partition and offset" in ran.stderr
