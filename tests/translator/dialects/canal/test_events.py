"""Canal: the samples, translated through the core to events."""

from __future__ import annotations

import json

import pytest

from tests.translator.dialects.canal.messages import canal, message, update
from tests.translator.dialects.case import CASES
from translator.message import Limits
from translator.translation.translate import Events, Translator


def test_the_flink_sample_gives_the_rows_that_flink_expects() -> None:
    """All lines of canal-data.txt translate to the 26 rows of Flink's own test (canal-data.expected.txt)."""
    translator = Translator("s", canal(), Limits())
    signs = {"c": ("+I",), "u": ("-U", "+U"), "d": ("-D",)}
    met = []
    for case in sorted((CASES / "canal").glob("flink_*")):
        result = translator.translate(message((case / "message.json").read_bytes()))
        assert isinstance(result, Events)
        for event in result.events:
            images = [json.loads(image) for image in (event.before, event.after) if image is not None]
            for sign, image in zip(signs.get(event.op or "", ()), images, strict=True):
                met.append(f"{sign}({','.join('null' if cell is None else str(cell) for cell in image.values())})")
    assert FLINK_EXPECTED.split("\n") == met


FLINK_EXPECTED = """\
+I(101,scooter,Small 2-wheel scooter,3.14)
+I(102,car battery,12V car battery,8.1)
+I(103,12-pack drill bits,12-pack of drill bits with sizes ranging from #40 to #3,0.8)
+I(104,hammer,12oz carpenter's hammer,0.75)
+I(105,hammer,14oz carpenter's hammer,0.875)
+I(106,hammer,null,1.0)
+I(107,rocks,box of assorted rocks,5.3)
+I(108,jacket,water resistent black wind breaker,0.1)
+I(109,spare tire,24 inch spare tire,22.2)
-U(106,hammer,null,1.0)
+U(106,hammer,18oz carpenter hammer,1.0)
-U(107,rocks,box of assorted rocks,5.3)
+U(107,rocks,box of assorted rocks,5.1)
+I(110,jacket,water resistent white wind breaker,0.2)
+I(111,scooter,Big 2-wheel scooter ,5.18)
-U(110,jacket,water resistent white wind breaker,0.2)
+U(110,jacket,new water resistent white wind breaker,0.5)
-U(111,scooter,Big 2-wheel scooter ,5.18)
+U(111,scooter,Big 2-wheel scooter ,5.17)
-D(111,scooter,Big 2-wheel scooter ,5.17)
-U(101,scooter,Small 2-wheel scooter,3.14)
+U(101,scooter,Small 2-wheel scooter,5.17)
-U(102,car battery,12V car battery,8.1)
+U(102,car battery,12V car battery,5.17)
-D(102,car battery,12V car battery,5.17)
-D(103,12-pack drill bits,12-pack of drill bits with sizes ranging from #40 to #3,0.8)"""


@pytest.mark.requirement("canal.produce.2")
def test_a_key_change_is_seen_with_its_old_key() -> None:
    """A key column in `old` with another value sets key_old (§4)."""
    body = update(old=[{"id": "6"}])
    result = Translator("s", canal(), Limits()).translate(message(json.dumps(body).encode()))
    assert isinstance(result, Events)
    assert ('{"id":7}', '{"id":6}') == (result.events[0].key, result.events[0].key_old)


@pytest.mark.requirement("canal.reject.5")
def test_the_vendors_delete_without_its_key_gets_through() -> None:
    """The legacy DELETE sample lacks its key column and becomes an event without a key, with a note."""
    sample = (CASES / "canal" / "dts_delete_legacy" / "message.json").read_bytes()
    result = Translator("s", canal(profile="dts_legacy"), Limits()).translate(message(sample))
    assert isinstance(result, Events)
    (event,) = result.events
    assert (None, '{"shipping_type":"aaa"}', ["KEY_INCOMPLETE"]) == (event.key, event.before, event.notes)
