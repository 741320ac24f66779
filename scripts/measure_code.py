"""Measure files, functions, folders and names, and fail where one is beyond what CONTRIBUTING allows.

A length counts all lines of a file, and of a function all but those of its docstring. A name is that of a
public class, or of an alias or a type variable that is written like one.

    python scripts/measure_code.py            what is beyond its bound, and exceptions that are not needed
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parent.parent / "src" / "headrace"

MOST_FILES: Final = 24
"""A folder with more files is not read as a list any more."""
MOST_LINES: Final = 500
"""Of a file; 400 is what one aims for."""
LONGEST_FUNCTION: Final = 50
"""Lines of a function without its docstring; 40 is what one aims for."""

EXCEPTIONS: Final[Mapping[str, str]] = {
    "algebra/nodes.py": "the closed union of all nodes, each with its definition: read as one page",
    "cli/illustrations/heartbeats.py:heartbeats": "a command's options, with the help of each",
    "cli/serve.py:serve": "a command's options, with the help of each",
    "cli/store.py:store": "a command's options, with the help of each",
    "engine/database.py": "the methods of the public class, nearly all docstring",
    "engine/run/core.py": "one state machine, until a query is one record",
    "engine/run/execution.py": "one state machine beside core.py, until a run has one shape",
    "runtime/driver/endless/live.py": "the thread of a run with all that it is asked for",
}
"""Files and functions (`file:function`) that may be longer, each with its reason."""


def length_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def names_in(tree: ast.Module) -> Iterator[str]:
    """The public classes and aliases that a module defines."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not name.isupper() and name[0].isupper():
                    yield name


def long_parts(name: str, text: str, tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """A file and its functions that are too long, with their lines and what is allowed."""
    if (lines := text.count("\n")) > MOST_LINES:
        yield name, lines, MOST_LINES
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (lines := length_of(node)) > LONGEST_FUNCTION:
            yield f"{name}:{node.name}", lines, LONGEST_FUNCTION


def problems_in(source: Path, exceptions: Mapping[str, str]) -> list[str]:
    """All that is beyond its bound in a package, and the exceptions that are not needed."""
    found: list[str] = []
    places: defaultdict[str, list[str]] = defaultdict(list)
    needed: set[str] = set()
    for path in sorted(source.rglob("*.py")):
        name, text = path.relative_to(source).as_posix(), path.read_text()
        tree = ast.parse(text)
        for public in names_in(tree):
            if not public.startswith("_"):
                places[public].append(name)
        for part, lines, allowed in long_parts(name, text, tree):
            needed.add(part)
            if part not in exceptions:
                found.append(f"{part} has {lines} lines, {allowed} are allowed")
    for public, modules in sorted(places.items()):
        if len(modules) > 1:
            found.append(f"{public} is the name of {len(modules)} things: {', '.join(modules)}")
    for folder in sorted({path.parent for path in source.rglob("*.py")}):
        files = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        if files > MOST_FILES:
            found.append(f"{folder.relative_to(source)}/ has {files} files, {MOST_FILES} are allowed")
    found += [
        f"{part} is short enough now: take it off the list of exceptions"
        for part in exceptions
        if part not in needed
    ]
    return found


def main() -> int:
    """Print what is beyond its bound; 1 if there is anything."""
    found = problems_in(SOURCE, EXCEPTIONS)
    print("\n".join(found) or "every file, function, folder and name is within its bound")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
