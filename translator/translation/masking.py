"""Masks: the one place through which every change goes, after its dialect and before anything is made of it.

Events, keys, images, records, schemas and guards know the masked change only. What is no change (a message that cannot
be translated) is not masked but left out: `Translator` and `dead_letter` (docs/decisions/0010-masks.md).
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
    """The masks of one source.

    Args:
        key: of hashes.
        keeps_messages: messages that cannot be translated go into dead letters whole, with the reason.
        warn: is told of each table whose key is masked.

    Raises:
        ConfigError: a rule needs a key, and there is none; or it is for a type that there is not.
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
        """Return a change as it may be seen from here on.

        Raises:
            ConfigError: a rule would take rows their key.
        """
        if isinstance(change, OtherChange):
            return self._announcement(change)
        table = self.of_table(change.table)
        return change if table is None else table.row(change)

    def takes_natively(self, layout: NativeLayout) -> bool:
        """Say whether rows of a layout have nothing that is masked, whatever columns they may have."""
        table = self.of_table(layout.table)
        if table is None:
            return True
        if layout.undeclared is not None or layout.schema is None:
            return False
        masks = table.masks_of(layout.schema.column_types)
        return all(masks[column.name] is None for column in layout.columns)

    def of_table(self, name: TableName) -> TableMasks | None:
        """Return the masks of a table; None where no rule masks anything of it."""
        if name not in self._tables:
            if len(self._tables) >= KEPT:
                self._tables.clear()
            full = full_name(name)
            rules = [(rule, mask) for rule, mask in self._rules if rule.matches_table(full)]
            masked = any(mask is not None for _, mask in rules)
            self._tables[name] = TableMasks(full, rules, self._warn_of) if masked else None
        return self._tables[name]

    def check_declared(self, table: DeclaredTable) -> None:
        """See that the key of a declared table stays one; what messages say of other keys is seen in its turn.

        Raises:
            ConfigError: a rule would take its rows their key.
        """
        if not set("*?").isdisjoint(table.table):
            return  # a pattern: which tables it means, and by which rules, messages tell
        masks = self.of_table(TableName(None, None, table.table))
        if masks is None:
            return
        columns = masks.masks_of(table.columns or {})
        # Types that are not declared come with messages, or never.
        masks.check_key(columns, tuple(name for name in table.key if table.columns or _is_of_any_type(columns[name])))

    def _warn_of(self, table: str, columns: Iterable[str]) -> None:
        self._warn(f"source {self._source}, table {quote(table, 200)}: {KEY_IS_HASHED.format(', '.join(columns))}")

    def _announcement(self, change: OtherChange) -> OtherChange:
        """A text of SQL may hold values of any table, wherever it is from: defaults, comments, conditions."""
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
    "key columns are hashed ({}): rows are named by hashes in every output. They stay apart, and joins work, as long as"
    " masks.key is the same; with another one, and from the day on that the mask is set, every row has another key"
)


def _is_of_any_type(mask: Mask | None) -> bool:
    return mask is None or mask.rule.type == ANY


def full_name(name: TableName) -> str:
    """Return `db.schema.table` without absent levels, as patterns over tables are written."""
    return joined_name(name.db, name.schema, name.table)
