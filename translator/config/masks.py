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
            "What to do with the column's values. `drop` leaves it out. `set_null` replaces them with NULL, `hash` "
            "with the HMAC-SHA-256 of their text in hex, and `replace` with a fixed string. `truncate` and "
            "`keep_last` keep only the first or the last characters of the text. `keep` leaves the column "
            "unmasked, regardless of later rules."
        ),
    )
    source: str = Field(default="*", min_length=1, description="Pattern for source names. `*` and `?` are wildcards.")
    table: str = Field(
        default="*",
        min_length=1,
        description="Pattern for `db.schema.table`. Leave out any level that the source does not have.",
    )
    column: str = Field(default="*", min_length=1, description="Pattern for column names.")
    type: str = Field(
        default="*", min_length=1, description="Pattern for canonical types. docs/envelope/values.md lists them."
    )
    length: int | None = Field(
        default=None, ge=1, description="Number of characters to keep with truncate or keep_last."
    )
    text: str | None = Field(default=None, description="Text that `replace` puts in place of every value.")

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
    """Column masks. They apply to events and to everything else that is written or shown (docs/masks.md)."""

    key: SecretStr | None = Field(
        default=None,
        min_length=32,
        description=(
            "Secret key for hashes. Write it as ${NAME}, and use at least 32 random characters. A different key "
            "produces different hashes."
        ),
    )
    messages: Literal["leave_out", "keep"] = Field(
        default="leave_out",
        description=(
            "How to store messages that cannot be translated, if their source has masks. With `leave_out`, a dead "
            "letter contains the error code and the position, but nothing from the message. With `keep`, a dead "
            "letter contains the whole message, as it does for other sources."
        ),
    )
    rules: tuple[MaskSettings, ...] = Field(
        default=(), description="Mask rules. The first rule that matches a column applies."
    )

    @model_validator(mode="after")
    def _hashes_have_a_key(self) -> MasksSettings:
        if self.key is None and any(rule.mask == "hash" for rule in self.rules):
            raise ValueError("a rule uses hash, which requires a key; set masks.key")
        return self

    def rules_of(self, source: str) -> list[MaskRule]:
        """Return the rules for a source, or none if no rule masks its columns."""
        rules = [rule for given in self.rules if (rule := given.rule()).matches_source(source)]
        return rules if any(rule.masks for rule in rules) else []
