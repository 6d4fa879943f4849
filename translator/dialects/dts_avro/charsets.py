"""Charset names of the sources -> Python codecs that read the same bytes (formats/dts_avro.md section 4.6)."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import TypeAlias

Decoder: TypeAlias = Callable[[bytes], str]
"""Raises UnicodeDecodeError; never replaces."""

BINARY = "binary"
"""MySQL's name for bytes that are no text."""


_MYSQL = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",  # lacks the vendor's extra characters: those fail, none is read wrong
    "euckr": "euc_kr",
    # Big-endian without a mark; Python's `utf-16` and `utf-32` would take the machine's order.
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "ascii": "ascii",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",  # the vendor's map says KOI8-R, a bug there
    "tis620": "tis_620",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "hp8": "hp_roman8",
}
# No sample shows how Oracle and PostgreSQL sources spell a charset; these are the names of those products and of Java.
_OTHERS = {
    "al32utf8": "utf-8",
    "utf-8": "utf-8",
    "zhs16gbk": "gbk",
    "we8mswin1252": "cp1252",
    "windows-1252": "cp1252",
    "iso-8859-1": "iso8859_1",
    "latin1": "iso8859_1",
    "us-ascii": "ascii",
    "sql_ascii": "ascii",
    "euc_cn": "gb2312",
    "euc_jp": "euc_jp",
    "euc_kr": "euc_kr",
    "win1252": "cp1252",
}


_CP1252_HOLES = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_MYSQL_LATIN1 = "".join(chr(byte) if byte in _CP1252_HOLES else bytes([byte]).decode("cp1252") for byte in range(256))


def _mysql_latin1(data: bytes) -> str:
    """MySQL's latin1 is cp1252 with its five unassigned bytes passed through."""
    return codecs.charmap_decode(data, "strict", _MYSQL_LATIN1)[0]


def _strict(codec: str) -> Decoder:
    if codec == "utf-8":
        return bytes.decode  # the same, without a call of our own

    def decode(data: bytes) -> str:
        return data.decode(codec)

    return decode


# By name in lower case. `binary` is no charset, and some of MySQL's have no codec (armscii8, dec8, geostd8, keybcs2,
# swe7): the vendor's map approximates those, which would be a guess.
MYSQL: Mapping[str, Decoder] = {
    **{name: _strict(codec) for name, codec in (_OTHERS | _MYSQL).items()},
    "latin1": _mysql_latin1,
}
OTHERS: Mapping[str, Decoder] = {name: _strict(codec) for name, codec in (_MYSQL | _OTHERS).items()}
