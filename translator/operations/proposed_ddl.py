"""Find out which contracts a proposed CREATE, ALTER, RENAME or DROP statement would break, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_core.table_contract import ContractColumn, TableContract, breaches, contract_id
from translator.dialects._ddl import syntax_trees
from translator.errors import ConfigError
from translator.operations.contracts import Breach, can_be_null

DIALECTS = ("mysql", "oracle", "postgres", "tsql")
"""The SQL dialects that a proposed statement may be in, by the names that sqlglot uses."""


def breaches_by_statements(contracts: Sequence[TableContract], sql: str, dialect: str) -> tuple[list[Breach], int]:
    """Return the breaches, and the number of statements that change a table with a contract. Statements apply one after
    another.

    Raises:
        ConfigError: a statement is not understood. It could break a contract unnoticed.
    """
    trees = syntax_trees(sql, dialect)
    if trees is None:
        raise ConfigError(
            f"the DDL cannot be parsed as {dialect}; choose its SQL dialect with --sql: {', '.join(DIALECTS)}"
        )
    tables = [_Table(contract, dialect) for contract in contracts]
    concerned = 0
    for number, tree in enumerate(trees, 1):
        for name in _names(tree, number):
            for table in tables:
                if table.is_named(name):
                    concerned += 1
                    table.apply(tree, number)
    return [breach for table in tables for breach in table.breaches()], concerned


def _names(tree: exp.Expr, number: int) -> list[exp.Table]:
    """Return the tables that a statement changes."""
    kind = str(tree.args.get("kind") or "").upper()
    if isinstance(tree, exp.Create | exp.Alter) and kind == "TABLE":
        named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        return [named]
    if isinstance(tree, exp.Drop) and kind == "TABLE":
        return [*tree.args["tables"]]
    if isinstance(tree, exp.Create | exp.Drop) and kind in _NO_COLUMNS:
        return []
    raise ConfigError(f"statement {number}: expected CREATE TABLE, ALTER TABLE or DROP TABLE")


_NO_COLUMNS = frozenset({"INDEX", "VIEW"})


class _Table:
    """A table that fulfills its contract, changed by statements.

    Columns that no statement changes have the type None.
    """

    def __init__(self, contract: TableContract, dialect: str) -> None:
        self._contract = contract
        self._dialect = dialect
        self._types: dict[str, str | None] = {column.name: None for column in contract.columns}
        self._key = contract.key
        self._nullable: set[str] = set()
        self._exists = True

    def is_named(self, name: exp.Table) -> bool:
        """Return whether a name can be this table's. If the name lacks a level, this level is not compared."""
        table = self._contract.table
        wanted = [part.lower() for part in (table.db, table.schema, table.table) if part]
        given = [part.name.lower() for part in name.parts]
        return wanted[-len(given) :] == given[-len(wanted) :]

    def breaches(self) -> list[Breach]:
        if not self._exists:
            sentences = ["the table is dropped or renamed"]
        else:
            sentences = breaches(self._contract, self._types, self._key)
            sentences += can_be_null(self._contract, self._nullable)
        return [Breach(contract_id(self._contract.table), sentence) for sentence in sentences]

    def apply(self, tree: exp.Expr, number: int) -> None:
        """Change the table as a statement does.

        Raises:
            ConfigError: a part of the statement is not understood.
        """
        if isinstance(tree, exp.Create):
            if not isinstance(tree.this, exp.Schema):
                raise ConfigError(f"statement {number}: CREATE TABLE without a list of columns")
            self._types, self._key, self._nullable, self._exists = {}, (), set(), True
            parts: Sequence[exp.Expr] = tree.this.expressions
        elif isinstance(tree, exp.Drop):
            self._exists = False
            return
        else:
            parts = tree.args.get("actions") or []
        for part in parts:
            if not self._change(part):
                raise ConfigError(f"statement {number}: a part of it is not understood: {part.key}")

    def _change(self, part: exp.Expr) -> bool:
        """Apply one part of a statement, and return whether it is understood."""
        match part:
            case exp.Schema() | exp.AddConstraint():
                return all(self._change(one) for one in part.expressions)
            case exp.ColumnDef():
                self._define(part)
            case exp.ModifyColumn():
                old = part.args.get("rename_from")
                if old is not None:
                    self._rename(old.name, part.this.name)
                self._define(part.this)
            case exp.AlterColumn():
                return self._alter(part)
            case exp.RenameColumn():
                self._rename(part.this.name, part.args["to"].name)
            case exp.Drop() if str(part.args.get("kind")).upper() == "COLUMN":
                for column in part.args["tables"]:
                    self._types.pop(self._spelled(column.name), None)
            case exp.PrimaryKey():
                names = [one.find(exp.Identifier) for one in part.expressions]  # a name can have a length or an order
                self._key = tuple(self._spelled(name.name) for name in names if name is not None)
                self._nullable -= set(self._key)
            case exp.Constraint():
                return all(self._change(one) for one in part.expressions)
            case exp.DropPrimaryKey():
                self._key = ()
            case exp.AlterRename():
                self._exists = False
            case _:
                return isinstance(part, _NO_EFFECT)
        return True

    def _define(self, part: exp.ColumnDef) -> None:
        name = self._spelled(part.name)
        self._types[name] = self._type(name, part.args.get("kind"))
        kinds = [one.args.get("kind") for one in part.args.get("constraints") or ()]
        is_key = any(isinstance(kind, exp.PrimaryKeyColumnConstraint) for kind in kinds)
        never = [not kind.args.get("allow_null") for kind in kinds if isinstance(kind, exp.NotNullColumnConstraint)]
        if is_key:
            self._key = (*self._key, name)
        self._nullable.discard(name)
        if not is_key and name not in self._key and never != [True]:
            self._nullable.add(name)

    def _alter(self, part: exp.AlterColumn) -> bool:
        name, allows = self._spelled(part.name), part.args.get("allow_null")
        if part.args.get("dtype") is not None:
            self._types[name] = self._type(name, part.args["dtype"])
            if self._dialect == "tsql" and allows is None:
                allows = True  # SQL Server makes the column nullable unless the statement has NOT NULL
        if allows is not None:
            (self._nullable.add if allows else self._nullable.discard)(name)
        changes_default = part.args.get("default") is not None or bool(part.args.get("drop"))
        return part.args.get("dtype") is not None or allows is not None or changes_default

    def _rename(self, old: str, new: str) -> None:
        self._types.pop(self._spelled(old), None)
        self._types[self._spelled(new)] = None

    def _spelled(self, name: str) -> str:
        """Return the name as the contract spells it. Sources compare column names without regard to case."""
        same = [known for known in (*self._types, *self._contract.by_name) if known.lower() == name.lower()]
        return next(iter(same), name)

    def _type(self, name: str, type_: exp.Expr | None) -> str | None:
        """Return the column's canonical type, or None if it does not change."""
        wanted = self._contract.by_name.get(name)
        if not isinstance(type_, exp.DataType) or (wanted is not None and self._is_same(wanted, type_)):
            return None
        return canonical_type(type_, self._dialect)

    def _is_same(self, wanted: ContractColumn, type_: exp.DataType) -> bool:
        """Return whether this is the type at the source that the contract has. The type of a masked column does not
        matter, because its values are replaced.
        """
        if wanted.masked or wanted.native is None:
            return wanted.masked
        try:
            return bool(exp.DataType.build(wanted.native, dialect=self._dialect) == type_)
        except (SqlglotError, ValueError):
            return False


_NO_EFFECT = (exp.IndexColumnConstraint, exp.UniqueColumnConstraint, exp.ForeignKey, exp.CheckColumnConstraint)
"""Parts of a statement that change neither columns nor the key."""


def _each(names: str, canonical: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), canonical)


_CANONICAL: Mapping[str, str] = {
    **_each("BOOLEAN", "boolean"),
    **_each("TINYINT", "int8"),
    **_each("SMALLINT YEAR", "int16"),
    **_each("INT MEDIUMINT", "int32"),
    **_each("BIGINT", "int64"),
    **_each("UTINYINT", "uint8"),
    **_each("USMALLINT", "uint16"),
    **_each("UINT UMEDIUMINT", "uint32"),
    **_each("UBIGINT", "uint64"),
    **_each("FLOAT", "float32"),
    **_each("DOUBLE", "float64"),
    **_each("CHAR NCHAR VARCHAR NVARCHAR TEXT TINYTEXT MEDIUMTEXT LONGTEXT NAME", "string"),
    **_each("BINARY VARBINARY BLOB TINYBLOB MEDIUMBLOB LONGBLOB", "bytes"),
    **_each("DATE", "date"),
    **_each("TIME", "time"),
    **_each("DATETIME DATETIME2 TIMESTAMP TIMESTAMPNTZ", "timestamp"),
    **_each("TIMESTAMPTZ TIMESTAMPLTZ", "timestamptz"),
    **_each("JSON JSONB", "json"),
    **_each("ENUM", "enum"),
    **_each("SET", "set"),
    **_each("UUID UNIQUEIDENTIFIER", "uuid"),
}

_DECIMALS: Mapping[str, tuple[int, int]] = {"mysql": (10, 0), "tsql": (18, 0)}
"""The precision and scale of a decimal type without parameters. In other sources, such a type has no limits."""


def canonical_type(type_: exp.DataType, dialect: str) -> str:
    """Return the canonical type that has the values of a source type. If there is none, return the text of the type.

    A dialect may publish a wider type, which contains the same values.
    """
    name = type_.this.name
    if name == "DECIMAL":
        numbers = [int(one.name) for one in type_.expressions if one.name.isdecimal()]
        numbers = numbers or list(_DECIMALS.get(dialect, ()))
        return f"decimal({numbers[0]},{(*numbers, 0)[1]})" if numbers else "decimal"
    if dialect == "oracle" and name == "DATE":
        return "timestamp"
    return _CANONICAL.get(name) or type_.sql(dialect=dialect)
