"""Each public class name has one meaning across all code that this repository ships or runs."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("cdc_core", "translator", "spark_sink", "dev", "bench")

# Names that several classes share, and why they have one meaning.
SHARED = {
    "Head": "dialects: the fields of a message that do not depend on its rows",
    "Layout": "dialects: how rows of one shape are read",
    "Layouts": "dialects: the layouts of a source, kept",
    "Metrics": "the metrics of a process; the two programs are two processes",
    "MetricsSettings": "the section `metrics` of a program's configuration",
    "Options": "dialects and codecs: the options of a source or a topic as the operator writes them",
    "Settings": "the configuration of a program",
    "Table": "dialects: what reading the rows of one source table takes",
}


@cache
def _public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_one_public_class_name_has_one_meaning() -> None:
    """Every name listed as shared is still shared."""
    shared = {name: paths for name, paths in _public_classes().items() if len(paths) > 1}
    assert {} == {name: paths for name, paths in shared.items() if name not in SHARED}
    assert set() == SHARED.keys() - shared.keys()


def test_names_that_are_shared_within_a_role_stay_in_it() -> None:
    """Sharing `Table` between dialects does not permit a `Table` elsewhere."""
    outside = [
        path
        for name, paths in _public_classes().items()
        if SHARED.get(name, "").startswith("dialects")
        for path in paths
        if not path.startswith(("translator/dialects/", "translator/codecs/"))
    ]
    assert [] == outside
