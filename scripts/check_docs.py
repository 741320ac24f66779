"""Run the examples of the documentation and compare what they print; check that links lead somewhere.

Each page is run from top to bottom in an empty folder of its own. What a fenced block's opening line says
decides what happens to it:

* ```` ```csv file=bids.csv ```` (any language): the block is written to that file.
* ```` ```console ````: every line after `$ ` is a command; the lines that follow are what it prints, standard
  output and error together. A line `...` stands for any lines. Times and rates may differ.
* ```` ```python ```` with `>>>` prompts: run by doctest; names last to the end of the page.
* Anything else is not run.

`python scripts/check_docs.py [PAGE...]` exits with 1 where something differs.
"""

from __future__ import annotations

import contextlib
import difflib
import doctest
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(`{3,})(\w*)[ \t]*(.*?)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
MEASURED = re.compile(r"\b\d[\d,]*(?:\.\d+)?(?= (?:s|ms|rows/s)\b)")
"""A time or a rate: it differs from run to run."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its opening line, its text and its first line's number."""

    language: str
    info: str
    text: str
    line: int


def blocks_of(page: str) -> Iterator[Block]:
    """The page's fenced blocks, in order."""
    for match in FENCE.finditer(page):
        line = page.count("\n", 0, match.start(4)) + 1
        yield Block(match[2], match[3], match[4], line)


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it is to print; `\\` and `> ` carry a command on."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        length = 1
        while lines[length - 1].rstrip().endswith("\\"):
            length += 1
        command = "".join(line.removeprefix("> ") for line in lines[:length])
        yield command, "".join(lines[length:])


def matches(expected: str, printed: str) -> bool:
    """Whether the text is as expected, where `...` stands for anything and times and rates may differ."""
    pattern = re.escape(MEASURED.sub("#", expected.strip())).replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, MEASURED.sub("#", printed.strip()), re.DOTALL) is not None


def run_console(block: Block, folder: Path, place: str) -> Iterator[str]:
    """Run a console block's commands; yields what differs."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"COLUMNS": "110", "NO_COLOR": "1"}
    code = 0
    for command, expected in commands_of(block.text):
        done = subprocess.run(
            ["bash", "-c", f"(exit {code}); {command}"],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        code = done.returncode
        if not matches(expected, done.stdout):
            compared = difflib.unified_diff(
                expected.strip().splitlines(),
                done.stdout.strip().splitlines(),
                "page",
                "run",
                lineterm="",
                n=9,
            )
            yield f"{place}: $ {command.strip()}\n" + "\n".join(compared)


def run_python(block: Block, names: dict[str, object], place: str) -> Iterator[str]:
    """Run a block of `>>>` examples among the page's names; yields what differs."""
    examples = doctest.DocTestParser().get_doctest(block.text, {}, place, place, block.line - 1)
    examples.globs = names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(examples, out=report.append, clear_globs=False)
    if report:
        yield "".join(report)


def check_examples(page: Path) -> Iterator[str]:
    """Run a page's examples in a fresh folder; yields what differs."""
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        for block in blocks_of(page.read_text()):
            place = f"{page.relative_to(ROOT)}:{block.line}"
            if block.info.startswith("file="):
                target = folder / block.info.removeprefix("file=")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text)
            elif block.language == "console":
                yield from run_console(block, folder, place)
            elif block.language == "python" and block.text.startswith(">>> "):
                yield from run_python(block, names, place)


def check_links(page: Path) -> Iterator[str]:
    """Yields the page's links to files that do not exist."""
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{page.relative_to(ROOT)}: a link to {target}, which does not exist"


def main(arguments: list[str]) -> int:
    """Check the pages named, or all; returns the exit code."""
    pages = [Path(argument).resolve() for argument in arguments]
    pages = pages or [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    faults = [fault for page in pages for check in (check_links, check_examples) for fault in check(page)]
    for fault in faults:
        print(fault, end="\n\n")
    print(f"{len(pages)} pages, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
