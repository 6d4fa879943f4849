"""Test dialect plug-ins with the conformance battery. A plug-in's tests import only this module of the kit.

`scorecard(folder)` tests the plug-in in the folder of its project. docs/dialects/your-own.md describes the properties.
Like `translator.dialect_api`, these names remain compatible in all 1.x releases. Later releases can add properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.conformance.battery import scorecard as scorecard
from translator.conformance.score import Score as Score
from translator.conformance.score import Scorecard as Scorecard

SINCE: Mapping[str, str] = dict.fromkeys(("scorecard", "Scorecard", "Score"), "0.1.0")
"""The release that introduced each name. It contains all public names."""

__all__ = ["SINCE", *SINCE]
