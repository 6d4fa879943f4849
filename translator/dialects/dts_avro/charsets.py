"""The Python codecs for charset names used by the sources. Each codec reads the same bytes (§4.6)."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import TypeAlias

Decoder: TypeAlias = Callable[[bytes], str]
"""Raises UnicodeDecodeError; never replaces characters."""

BINARY = "binary"
"""MySQL's name for bytes that are not text."""


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
    "eucjpms": "euc_jp",  # lacks the vendor's extra characters, which therefore fail instead of being misread
    "euckr": "euc_kr",
    # Big-endian without a byte order mark; Python's `utf-16` and `utf-32` would use the machine's order.
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
    "koi8u": "koi8_u",  # the vendor's map contains KOI8-R, which is a bug
    "tis620": "tis_620",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "hp8": "hp_roman8",
}
# No sample shows how Oracle, PostgreSQL and SQL Server sources spell a charset. The names below are the names that
# these products and Java use. Oracle's UTF8 writes characters beyond the BMP as two surrogates, which fail here instead
# of being misread.
_ORACLE = {
    "al32utf8": "utf-8",
    "al16utf16": "utf-16-be",
    "us7ascii": "ascii",
    "zhs16gbk": "gbk",
    "zhs16cgb231280": "gb2312",
    "zhs32gb18030": "gb18030",
    "zht16big5": "big5",
    "zht16mswin950": "cp950",
    "ja16sjis": "cp932",
    "ja16euc": "euc_jp",
    "ko16ksc5601": "euc_kr",
    "ko16mswin949": "cp949",
    "th8tisascii": "tis_620",
    "we8iso8859p1": "iso8859_1",
    "we8iso8859p9": "iso8859_9",
    "we8iso8859p15": "iso8859_15",
    "ee8iso8859p2": "iso8859_2",
    "cl8iso8859p5": "iso8859_5",
    "we8mswin1252": "cp1252",
    "ee8mswin1250": "cp1250",
    "cl8mswin1251": "cp1251",
    "el8mswin1253": "cp1253",
    "tr8mswin1254": "cp1254",
    "iw8mswin1255": "cp1255",
    "ar8mswin1256": "cp1256",
    "blt8mswin1257": "cp1257",
    "cl8koi8r": "koi8_r",
}
_POSTGRESQL = {
    "sql_ascii": "ascii",  # undefined beyond ASCII, so other bytes fail
    "unicode": "utf-8",
    "euc_cn": "gb2312",
    "euc_jp": "euc_jp",
    "euc_kr": "euc_kr",
    "uhc": "cp949",
    "johab": "johab",
    "latin1": "iso8859_1",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "latin9": "iso8859_15",
    "iso_8859_5": "iso8859_5",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "win866": "cp866",
    "win874": "cp874",
    **{f"win{number}": f"cp{number}" for number in range(1250, 1259)},
}
_JAVA = {
    "utf-8": "utf-8",
    "utf-16": "utf-16-be",
    "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le",
    "us-ascii": "ascii",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "shift_jis": "shift_jis",
    "windows-31j": "cp932",
    "euc-jp": "euc_jp",
    "euc-kr": "euc_kr",
    "koi8-r": "koi8_r",
    "tis-620": "tis_620",
    **{f"iso-8859-{number}": f"iso8859_{number}" for number in (1, 2, 5, 7, 8, 9, 13, 15)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
}
_OTHERS = _ORACLE | _POSTGRESQL | _JAVA


_CP1252_HOLES = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_MYSQL_LATIN1 = "".join(chr(byte) if byte in _CP1252_HOLES else bytes([byte]).decode("cp1252") for byte in range(256))


def _mysql_latin1(data: bytes) -> str:
    """Decode MySQL's latin1. It is cp1252, with its five unassigned bytes passed through."""
    return codecs.charmap_decode(data, "strict", _MYSQL_LATIN1)[0]


def _strict(codec: str) -> Decoder:
    if codec == "utf-8":
        return bytes.decode  # the same, without a Python call

    def decode(data: bytes) -> str:
        return data.decode(codec)

    return decode


# By name in lower case. `binary` is not a charset, and some MySQL charsets have no codec (armscii8, dec8, geostd8,
# keybcs2, swe7). The vendor's map approximates these, but using an approximation would be guessing.
MYSQL: Mapping[str, Decoder] = {
    **{name: _strict(codec) for name, codec in (_OTHERS | _MYSQL).items()},
    "latin1": _mysql_latin1,
}
OTHERS: Mapping[str, Decoder] = {name: _strict(codec) for name, codec in (_MYSQL | _OTHERS).items()}
