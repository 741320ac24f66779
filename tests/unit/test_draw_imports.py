"""The drawing of imports finds a circle between folders, also where no two modules make one."""

from __future__ import annotations

import importlib.util
from graphlib import CycleError
from pathlib import Path
from types import ModuleType

import pytest
from grimp import ImportGraph

SCRIPT = Path(__file__).parents[2] / "scripts" / "draw_imports.py"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_imports", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def graph_of(*imports: tuple[str, str]) -> ImportGraph:
    """A graph of a package `p` with the folders `a` and `b`."""
    graph = ImportGraph()
    for module in ("p", "p.a", "p.a.one", "p.a.two", "p.b", "p.b.one", "p.b.two", "p.c"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=f"p.{importer}", imported=f"p.{imported}")
    return graph


def test_floors_are_the_longest_chains_of_imports(drawing: ModuleType) -> None:
    graph = graph_of(("a.one", "b.one"), ("b.two", "c"), ("a.two", "c"))
    imports = drawing.imports_between(graph, "p")
    assert imports == {"p.a": {"p.b", "p.c"}, "p.b": {"p.c"}, "p.c": frozenset()}
    assert drawing.floors_of(imports) == [["p.c"], ["p.b"], ["p.a"]]


def test_folders_that_import_each_other_are_a_circle(drawing: ModuleType) -> None:
    imports = drawing.imports_between(graph_of(("a.one", "b.one"), ("b.two", "a.two")), "p")
    with pytest.raises(CycleError):
        drawing.floors_of(imports)
