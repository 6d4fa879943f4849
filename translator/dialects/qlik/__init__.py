"""Read Qlik Replicate (formerly Attunity Replicate): JSON messages, enveloped or bare, and their metadata messages.

`frame` finds the layout. `envelope_fields` and `masks` read the fields around the row. `metadata` and `tables`
determine the table and its types, and `rows` builds the row. `decode` is the dialect. Rules: docs/formats/qlik.md.
"""

from __future__ import annotations

from translator.dialects.qlik.decode import Qlik

__all__ = ["Qlik"]
