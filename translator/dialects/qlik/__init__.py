"""Qlik Replicate (formerly Attunity Replicate): JSON messages, enveloped or bare, with their metadata messages.

`frame` finds the layout, `headers` and `masks` read what stands beside the row, `metadata` and `tables` say which
table it is and of which types, `rows` puts the row together; `decode` is the dialect. Rules: docs/formats/qlik.md.
"""

from __future__ import annotations

from translator.dialects.qlik.decode import Qlik

__all__ = ["Qlik"]
