"""The possible changes to a source file. Each one affects a single operator, constant or result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Mutant(NamedTuple):
    """One change: the text from `start` to `end` is replaced by `new`. Offsets count bytes."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.old}` → `{self.new}`"


_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_SUMS: Mapping[type[ast.operator], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
_LOGIC: Mapping[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

# In Rust, spaces around an operator distinguish it from generics, references and patterns.
_RUST = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    "true": "false",
    "false": "true",
}
_RUST_TOKEN = re.compile("|".join(rf"\b{word}\b" if word.isalpha() else re.escape(word) for word in _RUST))


def mutants_of(file: str, source: bytes) -> Iterator[Mutant]:
    """Return all mutants of a Python or Rust file."""
    yield from _rust(file, source) if file.endswith(".rs") else _python(file, source)


def _python(file: str, source: bytes) -> Iterator[Mutant]:
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Mutant]:
        begin = starts[(left.end_lineno or 0) - 1] + (left.end_col_offset or 0)
        gap = source[begin : starts[right.lineno - 1] + right.col_offset]
        found = re.search(rf"(?<![\w<>=!]){re.escape(old)}(?![\w<>=])", gap.decode())
        if found is not None:
            at = begin + len(gap.decode()[: found.start()].encode())
            yield Mutant(file, left.end_lineno or 0, at, at + len(old), old, new)

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                yield from between(left, right, *_COMPARISONS[type(op)])
            case ast.BoolOp(op=logic, values=[first, second, *_]):
                yield from between(first, second, *_LOGIC[type(logic)])
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SUMS:
                yield from between(left, right, *_SUMS[type(sign)])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                at = starts[node.lineno - 1] + node.col_offset
                yield Mutant(file, node.lineno, at, starts[operand.lineno - 1] + operand.col_offset, "not ", "")
            case ast.Constant(value=bool() | int() as value) if node.end_col_offset is not None:
                at = starts[node.lineno - 1] + node.col_offset
                new = str(not value) if isinstance(value, bool) else str(value + 1)
                end = starts[node.lineno - 1] + node.end_col_offset
                yield Mutant(file, node.lineno, at, end, source[at:end].decode(), new)


def _rust(file: str, source: bytes) -> Iterator[Mutant]:
    at = 0
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        if line.strip() == b"#[cfg(test)]":
            return
        code = line.decode().partition("//")[0]
        for found in _RUST_TOKEN.finditer(code):
            begin = at + len(code[: found.start()].encode())
            yield Mutant(file, number, begin, begin + len(found[0]), found[0], _RUST[found[0]])
        at += len(line)
