"""The settings loader: its rules for YAML, the mistakes it rejects, and errors that do not quote the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from cdc_core.config import load, parse
from cdc_core.errors import ConfigError

SECRET = "hunter2"


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Login(Section):
    user: str = ""
    password: SecretStr | None = None


class Toy(Section):
    """Settings with every feature that the programs' settings use."""

    name: str = ""
    count: int = 0
    create: bool = True
    columns: dict[str, str] = Field(default_factory=dict)
    logins: tuple[Login, ...] = ()
    login: Login = Login()
    list: Annotated[tuple[str, ...], Field(min_length=1)] = ("a",)


def refusal(text: str) -> str:
    """Return the error for a text, without the file name."""
    with pytest.raises(ConfigError) as caught:
        parse(Toy, text, {}, "toy.yaml")
    said = str(caught.value)
    assert said.startswith("toy.yaml:")
    return said.removeprefix("toy.yaml:").strip()


class TestDuplicateKeys:
    def test_at_the_top(self) -> None:
        """A duplicate key is reported with both lines. YAML would silently use the last one."""
        assert "line 3: duplicate key 'name', first used on line 1" == refusal("name: g\ncount: 1\nname: h\n")

    @pytest.mark.parametrize(
        "text",
        [
            "logins: [{user: a, user: b}]",
            "columns: {a: x, 'a': y}",
            "columns: {1: x, '1': y}",
            "columns:\n  ? a\n  : x\n  ? a\n  : y",
        ],
    )
    def test_anywhere(self, text: str) -> None:
        """Duplicates are reported in every mapping of the file and in every spelling of the key."""
        assert ": duplicate key '" in refusal(text)

    def test_all_of_them(self) -> None:
        """One error reports all duplicates, including those in a repeated section."""
        said = refusal("login: {user: a}\nlogin: {user: a, user: b}\nlogin: {}\n")
        assert [
            "line 2: duplicate key 'login', first used on line 1",
            "line 2: duplicate key 'user', first used on line 2",
            "line 3: duplicate key 'login', first used on line 1",
        ] == [line.strip() for line in said.splitlines()]

    def test_anchors_and_merges_stay(self) -> None:
        """A merged mapping can be overridden, and an anchor can be used twice."""
        text = "logins:\n- &a {user: a, password: x}\n- {<<: *a, user: b}\n- *a\n- {<<: [*a, {user: c}]}\n"
        assert ["a", "b", "a", "a"] == [login.user for login in parse(Toy, text, {}, "toy.yaml").logins]


class TestBooleans:
    @pytest.mark.parametrize("name", ["NO", "no", "No", "ON", "off", "YES", "y", "n"])
    def test_names_are_texts(self, name: str) -> None:
        """As in YAML 1.2, a column can be called NO and a value can be `on`."""
        settings = parse(Toy, f"name: {name}\ncolumns: {{{name}: {name}}}", {}, "toy.yaml")
        assert (name, {name: name}) == (settings.name, settings.columns)

    @pytest.mark.parametrize("word", ["false", "False", "FALSE", "no", "off", "'false'"])
    def test_a_boolean_setting(self, word: str) -> None:
        """For a boolean setting, the words of older YAML count as booleans, and so does the text of a variable."""
        assert not parse(Toy, f"create: {word}", {}, "toy.yaml").create
        assert not parse(Toy, "create: ${WORD}", {"WORD": word.strip("'")}, "toy.yaml").create

    @pytest.mark.parametrize("word", ["nein", "2", "[]", "'~'"])
    def test_another_word(self, word: str) -> None:
        """The error for another word states what is expected."""
        assert "line 1: create: expected true or false" == refusal(f"create: {word}")

    def test_a_boolean_is_no_text(self) -> None:
        """`true` is not accepted as text."""
        assert "line 1: name: expected text; add quotes around values that YAML would read as another type" == refusal(
            "name: true"
        )


class TestSecrets:
    @pytest.mark.parametrize(
        "text",
        [
            f'login:\n  password: "{SECRET}\n  user: a\n',
            f"login:\n  password: '{SECRET}\n  user: 'a'\n",
            f"login: {{password: [{SECRET}\n",
            f"login:\n  password: *{SECRET}\n",
            f"login:\n  password: !{SECRET} x\n",
            f"login:\n  password: !{SECRET}!x y\n",
            f"login:\n  password: !a%22b'{SECRET} y\n",
            f"login:\n  password: &{SECRET} x\n  user: &{SECRET} y\n  name: [\n",
            f"login:\n  password: %{SECRET}\n",
            f"login:\n  password: @{SECRET}\n",
            f'login:\n  password: "a\\{SECRET}"\n',
            f"login:\n  password: {SECRET}: x\n",
            f"login:\n  password: {SECRET}\n user: x\n",
            f"login:\n\tpassword: {SECRET}\n",
            f"login:\n  password: !!int {SECRET}\n",
            f"login:\n  password: !!bool {SECRET}\n",
            f"login:\n  password: !!timestamp {SECRET}\n",
            f"login:\n  password: !!binary {SECRET}é\n",
            f"login:\n  password: {SECRET}\x00\n",
            f"login:\n  password: [{SECRET}]\n",
            f"login:\n  password: {{{SECRET}: 1}}\n",
            f"login:\n  password: {SECRET}\n  password: {SECRET}\n",
            f"- {SECRET}\n",
            SECRET,
        ],
    )
    def test_no_error_shows_the_file(self, text: str) -> None:
        """An error near a secret does not quote the file."""
        said = refusal(text)
        assert SECRET not in said

    def test_an_unclosed_quote(self) -> None:
        """The error states where the quote begins, not only that the file ends."""
        assert (
            "not YAML: while scanning a quoted scalar that begins in line 2: found unexpected end of stream "
            "(line 4, column 1)"
        ) == refusal(f'login:\n  password: "{SECRET}\n  user: a\n')

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a: *x", "found undefined alias … (line 1, column 4)"),
            ("a: @x", "found character … that cannot start any token (line 1, column 4)"),
            ("a:\n\tb: 1", "found character '\\t' that cannot start any token (line 2, column 1)"),
            ("a: !x y", "could not determine a constructor for the tag … (line 1, column 4)"),
            ("a: [1\nb: 2", "expected ',' or ']', but got ':' (line 2, column 2)"),
            ("a: 1\n  b: 2", "mapping values are not allowed here (line 2, column 4)"),
            ("a: 2026-02-31", "not a valid timestamp (line 1, column 4)"),
            ("a: !!int x", "not a valid int (line 1, column 4)"),
            ("a: \x00", "it contains a character that YAML does not allow"),
        ],
    )
    def test_what_is_told(self, text: str, said: str) -> None:
        """The error contains PyYAML's message with line and column."""
        assert refusal(text).startswith("not YAML")
        assert refusal(text).endswith(said)


class TestFile:
    def test_not_utf_8(self, tmp_path: Path) -> None:
        """A file in another encoding is reported in one line."""
        path = tmp_path / "toy.yaml"
        path.write_bytes("name: ä".encode("latin-1"))
        with pytest.raises(ConfigError, match=rf"^cannot read {path}: byte 6 is not valid UTF-8$"):
            load(Toy, path, {})

    def test_absent(self, tmp_path: Path) -> None:
        """A missing file or a folder is reported in one line."""
        with pytest.raises(ConfigError, match=r": No such file or directory$"):
            load(Toy, tmp_path / "toy.yaml", {})
        with pytest.raises(ConfigError, match=r": Is a directory$"):
            load(Toy, tmp_path, {})

    @pytest.mark.parametrize("text", ["", "- a", "a"])
    def test_no_mapping(self, text: str) -> None:
        """A file that contains no mapping is reported."""
        assert "the file must contain a mapping at the top level" == refusal(text)

    @pytest.mark.parametrize("text", ["name: " + "[" * 5000, "list: &a [*a]"])
    def test_without_an_end(self, text: str) -> None:
        """A structure that is nested too deeply or contains itself is rejected."""
        assert "the file is nested too deeply, or an alias refers to itself" == refusal(text)


def test_all_mistakes_at_once() -> None:
    """All wrong types, names and values are reported with their places, and unknown names with the closest match."""
    text = "cuont: 1\ncount: many\nlogins: [{usr: a}]\nlogin: {usr: a}\nlist: []\n"
    assert [
        "line 1: cuont: unknown setting 'cuont' (did you mean count?); "
        "allowed: columns, count, create, list, login, logins, name",
        "line 2: count: expected a whole number",
        "line 3: logins[0].usr: unknown setting 'usr' (did you mean user?); allowed: password, user",
        "line 4: login.usr: unknown setting 'usr' (did you mean user?); allowed: password, user",
        "line 5: list: expected at least 1 entry",
    ] == sorted(line.strip() for line in refusal(text).splitlines())


def test_variables() -> None:
    """A variable stands for a single value. An unset variable is an error."""
    settings = parse(Toy, "name: 'a${A}b'\ncount: ${N}\n", {"A": "x: [", "N": "7"}, "toy.yaml")
    assert ("ax: [b", 7) == (settings.name, settings.count)
    assert "environment variable A is not set" == refusal("name: ${A}")
