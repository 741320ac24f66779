"""Draw the imports between the rooms of each folder, and fail where they run in a circle.

The rooms of a folder are the modules and folders in it. A room imports another if any module in it does.
Floors are the longest chain of such imports, arrows their number; a circle is a set of rooms that reach
each other, so that none of them can be read, tested or replaced without the rest.

    python scripts/draw_imports.py            one line per folder
    python scripts/draw_imports.py runtime    the rooms of one folder, floor by floor, with their imports
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from grimp import ImportGraph, build_graph

PACKAGE = "headrace"

Imports = Mapping[str, frozenset[str]]
"""The rooms that each room of a folder imports."""


def imports_between(graph: ImportGraph, folder: str) -> Imports:
    """The rooms of a folder, and which of its other rooms each imports."""
    rooms = sorted(graph.find_children(folder))
    owner = {module: room for room in rooms for module in (room, *graph.find_descendants(room))}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module, room in owner.items():
        targets = graph.find_modules_directly_imported_by(module)
        found[room].update(owner[target] for target in targets if target in owner)
    return {room: frozenset(targets - {room}) for room, targets in found.items()}


def floors_of(imports: Imports) -> list[list[str]]:
    """The rooms by floor, the ground floor (which imports no other room) first.

    Raises:
        CycleError: some rooms import each other.
    """
    sorter = TopologicalSorter(imports)
    sorter.prepare()
    floors = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        floors.append(ready)
        sorter.done(*ready)
    return floors


def main(wanted: list[str]) -> int:
    """Print the drawing; 1 if there is a circle."""
    graph = build_graph(PACKAGE)
    folders = sorted(module for module in graph.modules if graph.find_children(module))
    circles = 0
    if not wanted:
        print(f"{'folder':44}{'rooms':>7}{'floors':>8}{'arrows':>8}{'circles':>9}")
    for folder in folders:
        imports = imports_between(graph, folder)
        arrows = sum(map(len, imports.values()))
        try:
            floors = floors_of(imports)
        except CycleError as error:
            circles += 1
            print(f"{folder}: a circle, {' -> '.join(short(room) for room in error.args[1])}")
            continue
        if not wanted:
            print(f"{folder:44}{len(imports):7}{len(floors):8}{arrows:8}{0:9}")
        elif folder in (f"{PACKAGE}.{name.replace('/', '.')}" for name in wanted):
            for number, floor in reversed(list(enumerate(floors))):
                for room in floor:
                    print(f"{number:3}  {short(room):28}{', '.join(sorted(map(short, imports[room])))}")
    return 1 if circles else 0


def short(room: str) -> str:
    """The last part of a room's name."""
    return room.rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
