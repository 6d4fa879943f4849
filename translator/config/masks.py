"""The section `masks`: columns that nobody shall read in what is written."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from cdc_core.kafka_settings import Section
from translator.config.mask_rules import Action, MaskRule

_NEEDS = {"truncate": "length", "keep_last": "length", "replace": "text"}
"""The setting that an action needs beside its patterns."""


class MaskSettings(Section):
    """One rule. The first that matches a column decides; a rule without patterns is for every column."""

    mask: Action = Field(
        description="drop: the column is left out. set_null: its values are NULL. hash: HMAC-SHA-256 of their text, in "
        "hex. truncate, keep_last: the first or the last characters of their text. replace: one text for all. keep: as "
        "they are, whatever later rules say.",
    )
    source: str = Field(default="*", min_length=1, description="Pattern over names of sources, with * and ?.")
    table: str = Field(
        default="*",
        min_length=1,
        description="Pattern over `db.schema.table`, without levels that the source does not have.",
    )
    column: str = Field(default="*", min_length=1, description="Pattern over names of columns.")
    type: str = Field(default="*", min_length=1, description="Pattern over canonical types: docs/envelope.md.")
    length: int | None = Field(default=None, ge=1, description="Of truncate and keep_last: how many characters stay.")
    text: str | None = Field(default=None, description="Of replace: what stands in place of every value.")

    @model_validator(mode="after")
    def _complete(self) -> MaskSettings:
        needed = _NEEDS.get(self.mask)
        for name in ("length", "text"):
            if (getattr(self, name) is not None) != (name == needed):
                raise ValueError(f"mask {self.mask} {'needs' if name == needed else 'has no'} {name}")
        return self

    def rule(self) -> MaskRule:
        return MaskRule(self.mask, self.source, self.table, self.column, self.type, self.length or 0, self.text or "")


class MasksSettings(Section):
    """Masks of columns, in events and in everything else that is written or shown (docs/masks.md)."""

    key: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="Of hashes: at least 32 random characters, as ${NAME}; another key makes other hashes.",
    )
    messages: Literal["leave_out", "keep"] = Field(
        default="leave_out",
        description="Of a source with masks, messages that cannot be translated. leave_out: their dead letters have "
        "code and place, and neither the message nor what stood in it. keep: as those of other sources.",
    )
    rules: tuple[MaskSettings, ...] = Field(default=(), description="In the order in which they are tried.")

    @model_validator(mode="after")
    def _hashes_have_a_key(self) -> MasksSettings:
        if self.key is None and any(rule.mask == "hash" for rule in self.rules):
            raise ValueError("a rule hashes: set key")
        return self

    def rules_of(self, source: str) -> list[MaskRule]:
        """Return the rules of a source; none where none of them masks."""
        rules = [rule for given in self.rules if (rule := given.rule()).matches_source(source)]
        return rules if any(rule.masks for rule in rules) else []
