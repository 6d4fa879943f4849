"""Render templates. Anything from a message is rendered as text. It is escaped, and invisible characters are made
visible.

Nothing here needs a web server, so pages can also be files.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from translator.web.meanings import meaning

Nav: TypeAlias = Sequence[tuple[str, str]]
"""Each existing page's address and name."""


class Addresses(NamedTuple):
    """The addresses that pages link to.

    Args:
        static: the folder of style sheet and scripts.
        sample: the address of a sample, with `{}` in place of the sample's name.
        policy: the Content-Security-Policy for pages that no server protects.
    """

    playground: str
    codes: str
    static: str
    sample: str
    policy: str = ""


SERVED = Addresses("/", "/codes", "/static/", "/?sample={}")
"""The addresses of the desk."""

FILES = Addresses(
    "index.html",
    "codes.html",
    "",
    "{}.html",
    "default-src 'none'; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'",
)
"""The addresses of a playground that consists of files in one folder."""

# Control and format characters can be invisible, or can reverse the direction of a line or end it.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
_LINES = frozenset("\n\t")


def visible(text: str) -> str:
    """Return text in which every character is visible. Line breaks are kept."""
    return "".join(_seen(char) for char in text)


def _seen(char: str) -> str:
    hidden = char not in _LINES and unicodedata.category(char) in _INVISIBLE
    return f"\\u{ord(char):04x}" if hidden else char


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("translator.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    environment.globals["meaning"] = meaning
    return environment


def rendered(template: str, addresses: Addresses, *, nav: Nav = (), **content: Any) -> str:
    """Return a template's text.

    Args:
        nav: the existing pages.
    """
    return _environment().get_template(template).render(content, nav=nav, addresses=addresses)
