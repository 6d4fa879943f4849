"""Parse `mysqlType`. It is free text from `SHOW CREATE TABLE`, or from canal's own DDL parser (§7.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cdc_core.sized_cache import SizedCache


class MysqlType(Struct, frozen=True):
    """A parsed column type.

    `text` is the type with normalized case and blanks, so `DECIMAL(8, 0)` and `decimal(8,0)` are the same type. Labels
    are unchanged. `labels` is None if no labels were sent, or if they cannot be trusted.
    """

    text: str
    name: str
    numbers: tuple[int, ...] = ()
    labels: tuple[str, ...] | None = None
    attributes: tuple[str, ...] = ()

    @property
    def unsigned(self) -> bool:
        """Return whether the type is unsigned. MySQL makes every ZEROFILL column unsigned."""
        return "unsigned" in self.attributes or "zerofill" in self.attributes

    @property
    def charset(self) -> str | None:
        """The character set in the text: `CHARACTER SET x` or `CHARSET x`."""
        words = self.attributes
        for index, word in enumerate(words[:-1]):
            if word == "charset" or (word == "set" and index and words[index - 1] == "character"):
                return words[index + 1]
        return None


# Quotes inside labels are doubled. The quantifiers are possessive, so that no text causes backtracking.
_TOKEN = re.compile(r"\s*+(?:(?P<label>'(?:[^']|'')*+')|(?P<word>[A-Za-z_][\w$]*+)|(?P<number>\d++)|(?P<mark>[(),]))")
OTHER_NAMES_OF_TEXT = (
    "char varying",
    "character varying",
    "national char",
    "national character",
    "national varchar",
    "national char varying",
    "national character varying",
    "nchar varchar",
    "nchar varying",
    "long varchar",
    "long char varying",
    "long character varying",
)
_NAMES = frozenset(tuple(name.split()) for name in (*OTHER_NAMES_OF_TEXT, "double precision", "long varbinary"))
"""Type names that consist of several words. The longest match applies."""
_DIGITS = 5
"""Maximum number of digits in a number in a MySQL type. The greatest such number is a VARCHAR length, 65535."""

Token = tuple[str, str]
"""A token's kind (a group in _TOKEN) and its text: words in lower case, labels without quotes."""


class _Malformed(Exception):
    """The text does not match the grammar."""


def _parse(text: str) -> MysqlType | None:
    try:
        name, rest = _name(_tokens(text))
        arguments, rest = _arguments(rest)
        return _assembled(name, arguments, tuple(word for _, word in rest))
    except _Malformed:
        return None


parse = SizedCache(_parse, most=4 * 1024 * 1024, longest=8 * 1024)
"""Return the parsed text of a type. Return None if the text is empty or does not match the grammar."""


def _tokens(text: str) -> list[Token]:
    tokens = []
    end = 0
    text = text.strip()
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None or match.lastgroup is None:
            raise _Malformed
        word = match[match.lastgroup]
        tokens.append((match.lastgroup, _UNQUOTED[match.lastgroup](word)))
        end = match.end()
    return tokens


_UNQUOTED: Mapping[str, Callable[[str], str]] = {
    "label": lambda text: text[1:-1].replace("''", "'"),
    "word": str.lower,
    "number": str,
    "mark": str,
}


def _name(tokens: list[Token]) -> tuple[str, list[Token]]:
    """Return the words that name the type, and the remaining tokens."""
    if not tokens or tokens[0][0] != "word":
        raise _Malformed
    words = tuple(text for _, text in tokens[:3])
    length = next((length for length in (3, 2) if words[:length] in _NAMES), 1)
    return " ".join(words[:length]), tokens[length:]


def _arguments(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the bracketed, comma-separated arguments, and the remaining tokens."""
    if not tokens or tokens[0] != ("mark", "("):
        return [], tokens
    if ("mark", ")") not in tokens:
        raise _Malformed
    close = tokens.index(("mark", ")"))
    inside = tokens[1:close]
    arguments, commas = inside[::2], inside[1::2]
    if len(inside) % 2 == 0 or any(comma != ("mark", ",") for comma in commas):
        raise _Malformed
    return arguments, tokens[close + 1 :]


def _assembled(name: str, arguments: Sequence[Token], attributes: tuple[str, ...]) -> MysqlType:
    kinds = {kind for kind, _ in arguments}
    texts = tuple(text for _, text in arguments)
    if kinds <= {"number"}:
        if any(len(text) > _DIGITS for text in texts):
            raise _Malformed
        spelled = ",".join(texts)
        return MysqlType(_text(name, spelled, attributes), name, tuple(map(int, texts)), None, attributes)
    if kinds == {"label"}:
        spelled = ",".join("'" + text.replace("'", "''") + "'" for text in texts)
        # A backslash is an escape in the server's text but a character in canal's, so such labels are ambiguous.
        labels = None if any("\\" in text for text in texts) else texts
        return MysqlType(_text(name, spelled, attributes), name, (), labels, attributes)
    raise _Malformed


def _text(name: str, arguments: str, attributes: Sequence[str]) -> str:
    return " ".join([f"{name}({arguments})" if arguments else name, *attributes])
