"""An event with a value in every field, and its parts, shared by several tests."""

from cdc_core.envelope import ChangeEvent, Context, Ddl, Detail, ImageText, Issue, Key, Origin, Tx

CONTEXT = Context(
    id="shop/raw.shop/3/42/0",
    source="shop",
    dialect="canal",
    variant="oss",
    variant_basis="declared",
    dbms="mysql",
    server="db-1",
    task="task-7",
    db="shop",
    schema="dbo",
    table="orders",
    pos="0000.00000000000000000000000000000000000000.0000000000000000042.000000",
    pos_scope="raw.shop:3@dGhlLXRvcGljLWlkLS0tLQ",
    pos_native="binlog.000007:1234",
    ts_commit_us=1_700_000_000_000_000,
    ts_capture_us=1_700_000_000_250_000,
    ts_origin_us=1_700_000_000_500_000,
    schema_id="0123456789abcdef",
    tx=Tx("gtid:5", 1, 2, False),
    origin=Origin("raw.shop", 3, 42, 0, 1),
)
KEY = Key('{"id":8}', "primary", '{"id":7}')
BEFORE = ImageText('{"id":7,"price":"9.90"}', "partial")
AFTER = ImageText('{"id":8,"price":"12.50"}', "full")
DETAIL = Detail(
    changed=["id", "price"],
    unavailable=["photo"],
    issues=[Issue("born", "ZERO_DATE", "0000-00-00")],
    notes=["PK_CHANGED"],
    ext={"rowid": "AAAB"},
)
DDL = Ddl("ALTER", "ALTER TABLE orders ADD x INT", ["orders"], True)
UPDATE = ChangeEvent.update(CONTEXT, KEY, BEFORE, AFTER, DETAIL)

BLANK = ChangeEvent.watermark(
    Context(
        id="s/t/0/0/0",
        source="s",
        dialect="canal",
        variant=None,
        variant_basis=None,
        dbms=None,
        server=None,
        task=None,
        db=None,
        schema=None,
        table=None,
        pos="0000.00000000000000000000000000000000000000.0000000000000000000.000000",
        pos_scope="t:0@-",
        pos_native=None,
        ts_commit_us=None,
        ts_capture_us=None,
        ts_origin_us=0,
        schema_id=None,
        tx=None,
        origin=Origin("t", 0, 0, 0, 0),
    ),
    Detail(),
)
"""An event with only the required fields. `msgspec.structs.replace` derives others from it."""
