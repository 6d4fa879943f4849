"""The `masks` section: columns whose values must not be readable in any output."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from cdc_core.kafka_settings import Section
from translator.config.mask_rules import Action, MaskRule

_NEEDS = {"truncate": "length", "keep_last": "length", "replace": "text"}
"""The setting that each action requires in addition to its patterns."""


class MaskSettings(Section):
    """A mask rule. The first rule that matches a column applies; a rule without patterns matches every column."""

    mask: Action = Field(
        description=(
            "drop: leave the column out. set_null: replace values with NULL. hash: replace values with the "
            "HMAC-SHA-256 of their text, in hex. truncate, keep_last: keep only the first or last characters of the "
            "text. replace: use one fixed text for all values. keep: leave the column unmasked, regardless of later "
            "rules."
        ),
    )
    source: str = Field(default="*", min_length=1, description="Pattern for source names, with * and ?.")
    table: str = Field(
        default="*",
        min_length=1,
        description="Pattern for `db.schema.table`. Omit levels that the source does not have.",
    )
    column: str = Field(default="*", min_length=1, description="Pattern for column names.")
    type: str = Field(
        default="*", min_length=1, description="Pattern for canonical types, as listed in docs/envelope/values.md."
    )
    length: int | None = Field(default=None, ge=1, description="Number of characters that truncate and keep_last keep.")
    text: str | None = Field(default=None, description="Text that `replace` substitutes for every value.")

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
    """Column masks, which apply to events and to everything else that is written or shown (docs/masks.md)."""

    key: SecretStr | None = Field(
        default=None,
        min_length=32,
        description=(
            "Key for hashes: at least 32 random characters, as ${NAME}. A different key produces different hashes."
        ),
    )
    messages: Literal["leave_out", "keep"] = Field(
        default="leave_out",
        description=(
            "What to do with untranslatable messages of a source that has masks. leave_out: the dead letter contains "
            "the error code and the position, but neither the message nor anything from it. keep: the dead letter "
            "contains the message, as for other sources."
        ),
    )
    rules: tuple[MaskSettings, ...] = Field(default=(), description="Mask rules, tried in this order.")

    @model_validator(mode="after")
    def _hashes_have_a_key(self) -> MasksSettings:
        if self.key is None and any(rule.mask == "hash" for rule in self.rules):
            raise ValueError("a rule uses hash, but key is not set: set masks.key")
        return self

    def rules_of(self, source: str) -> list[MaskRule]:
        """Return the rules for a source, or none if no rule masks its columns."""
        rules = [rule for given in self.rules if (rule := given.rule()).matches_source(source)]
        return rules if any(rule.masks for rule in rules) else []
