"""Masks. Every change passes through this module after the dialect has decoded it, and before anything else uses it.

Events, keys, images, records, schemas and guards see nothing but the masked change. A message that cannot be translated
cannot be masked either, so it is left out: see `Translator` and `dead_letter` (docs/decisions/0010-masks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from cdc_core.table_id import joined_name
from translator._native.layout import NativeLayout
from translator.config.mask_rules import MaskRule
from translator.config.table_filter import ANY
from translator.errors import ConfigError, quote, unknown
from translator.message import Change, DeclaredTable, OtherChange, TableName
from translator.translation.mask_values import masked_by
from translator.translation.table_masks import KEPT, NOTE, Mask, TableMasks
from translator.values import CANONICAL_TYPES


class SourceMasks:
    """The masks for one source.

    Args:
        key: the key for hashes.
        keeps_messages: dead letters contain the whole message and the full reason.
        warn: called for each table whose key is masked.

    Raises:
        ConfigError: a rule requires a key and none is set, or a rule is for an unknown type.
    """

    def __init__(
        self,
        source: str,
        rules: Sequence[MaskRule],
        key: bytes | None = None,
        *,
        keeps_messages: bool = False,
        warn: Callable[[str], object] = lambda text: None,
    ) -> None:
        for rule in rules:
            if not any(map(rule.matches_type, CANONICAL_TYPES)) and not rule.type.startswith("decimal("):
                raise ConfigError(f"masks: {unknown('type', rule.type, CANONICAL_TYPES)}")
        self._source = source
        self._rules = [(rule, Mask(rule, masked_by(rule, key)) if rule.masks else None) for rule in rules]
        self._tables: dict[TableName, TableMasks | None] = {}
        self._warn = warn
        self.keeps_messages = keeps_messages

    def apply(self, change: Change) -> Change:
        """Return the masked change.

        Raises:
            MessageError: the message has a key that a rule would remove.
        """
        if isinstance(change, OtherChange):
            return self._announcement(change)
        table = self.of_table(change.table)
        return change if table is None else table.row(change)

    def takes_natively(self, layout: NativeLayout) -> bool:
        """Return whether rows with this layout need no masking, regardless of their columns."""
        table = self.of_table(layout.table)
        if table is None:
            return True
        if layout.undeclared is not None or layout.schema is None:
            return False
        masks = table.masks_of(layout.schema.column_types)
        return all(masks[column.name] is None for column in layout.columns)

    def of_table(self, name: TableName) -> TableMasks | None:
        """Return a table's masks, or None if no rule applies to it."""
        if name not in self._tables:
            if len(self._tables) >= KEPT:
                self._tables.clear()
            full = full_name(name)
            rules = [(rule, mask) for rule, mask in self._rules if rule.matches_table(full)]
            masked = any(mask is not None for _, mask in rules)
            self._tables[name] = TableMasks(full, rules, self._warn_of) if masked else None
        return self._tables[name]

    def check_declared(self, table: DeclaredTable) -> None:
        """Check that masks leave a declared table with a usable key. Keys from messages are checked when they arrive.

        Raises:
            ConfigError: a rule would remove the table's row key.
        """
        if not set("*?").isdisjoint(table.table):
            return  # for a pattern, only messages show which tables match and which rules apply
        masks = self.of_table(TableName(None, None, table.table))
        if masks is None:
            return
        columns = masks.masks_of(table.columns or {})
        # If types are not declared, only messages can provide them.
        masks.check_key(columns, tuple(name for name in table.key if table.columns or _is_of_any_type(columns[name])))

    def _warn_of(self, table: str, columns: Iterable[str]) -> None:
        self._warn(f"source {self._source}, table {quote(table, 200)}: {KEY_IS_HASHED.format(', '.join(columns))}")

    def _announcement(self, change: OtherChange) -> OtherChange:
        """Remove SQL text, because it may contain values from any table: defaults, comments, conditions."""
        if change.kind != "schema":
            return change
        left_out = False
        if change.ddl is not None and change.ddl.sql is not None:
            change.ddl, left_out = structs.replace(change.ddl, sql=None), True
        if change.ext is not None:
            change.ext, left_out = None, True
        table = None if change.table is None else self.of_table(change.table)
        if table is not None:
            left_out = table.statement(change) or left_out
        if table is not None and change.schema is not None:
            masked = table.schema(change.schema)
            left_out = left_out or masked is not change.schema
            change.schema = masked
        if left_out:
            change.notes = [*(change.notes or ()), NOTE]
        return change


KEY_IS_HASHED = (
    "key columns are hashed ({}): outputs identify rows by hashes. Rows stay distinct and joins work until masks.key "
    "changes. Setting the mask, or changing masks.key, gives every row a different key"
)


def _is_of_any_type(mask: Mask | None) -> bool:
    return mask is None or mask.rule.type == ANY


def full_name(name: TableName) -> str:
    """Return `db.schema.table` without absent levels, as used in table patterns."""
    return joined_name(name.db, name.schema, name.table)
