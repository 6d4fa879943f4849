"""The public interface for dialects in other distributions. A plug-in imports only this module of the translator.

The interface has version 1, and remains compatible in all 1.x releases. Later releases may add names and fields, but
never change or remove one. `SINCE` lists all names, each with the release that introduced it. docs/dialects/your-own.md
is the tutorial.

A dialect gets messages and returns changes. It does no I/O, and receives only its own options. It sees no settings of
other sources, no secrets, and no producer.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_core.envelope import Column as Column
from cdc_core.envelope import Ddl as Ddl
from cdc_core.envelope import Issue as Issue
from cdc_core.envelope import TableSchema as TableSchema
from cdc_core.envelope import Tx as Tx
from translator.dialects._json import check_distinct as check_distinct
from translator.dialects._json import field as field
from translator.dialects._json import parse_object as parse_object
from translator.dialects._masked_json import masked_json as masked_json
from translator.dialects._masked_values import MaskedValues as MaskedValues
from translator.dialects._plugin import DialectPlugin as DialectPlugin
from translator.dialects._plugin import MasksItself as MasksItself
from translator.errors import ConfigError as ConfigError
from translator.errors import ErrorCode as ErrorCode
from translator.errors import MessageError as MessageError
from translator.errors import Unmaskable as Unmaskable
from translator.message import Changes as Changes
from translator.message import DeclaredTable as DeclaredTable
from translator.message import Dialect as Dialect
from translator.message import Learned as Learned
from translator.message import Learning as Learning
from translator.message import Limits as Limits
from translator.message import Message as Message
from translator.message import Naming as Naming
from translator.message import Needs as Needs
from translator.message import OtherChange as OtherChange
from translator.message import RowChange as RowChange
from translator.message import Sequenced as Sequenced
from translator.message import Setup as Setup
from translator.message import Skip as Skip
from translator.message import TableName as TableName
from translator.message import Writer as Writer
from translator.proposals import Proposal as Proposal
from translator.proposals import ReadMessage as ReadMessage
from translator.proposals import Recognizer as Recognizer

SINCE: Mapping[str, str] = dict.fromkeys(
    (
        *("DialectPlugin", "Dialect", "Naming", "Learning", "Sequenced", "MasksItself"),
        *("Setup", "Limits", "DeclaredTable", "Message"),
        *("Changes", "RowChange", "OtherChange", "Skip", "Learned", "Needs"),
        *("TableName", "Writer", "TableSchema", "Column", "Ddl", "Issue", "Tx"),
        *("MessageError", "ErrorCode", "ConfigError", "Unmaskable"),
        *("Recognizer", "Proposal", "ReadMessage"),
        *("MaskedValues", "masked_json", "parse_object", "check_distinct", "field"),
    ),
    "0.1.0",
)
"""The release that introduced each name. It contains all public names."""

__all__ = ["SINCE", *SINCE]
