"""Run the examples of the documentation and compare what they print; check that links lead somewhere.

Each page is run from top to bottom in an empty folder of its own. What a fenced block's opening line says
decides what happens to it:

* ```` ```csv file=bids.csv ```` (any language): the block is written to that file.
* ```` ```console ````: what follows `$ ` is a command, and `> ` carries it on; the lines after it are what it
  prints, standard output and error together. `...` stands for anything. Times, rates, shares and sizes in
  bytes may differ.
* ```` ```python ```` with `>>>` prompts: run by doctest; names last to the end of the page.
* Anything else is not run.

`python scripts/check_docs.py [PAGE...]` exits with 1 where something differs; with `--write` it puts what the
commands print into the pages instead, to be read before it is committed.
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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(`{3,})(\w*)[ \t]*(.*?)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
MEASURED = re.compile(r"\b\d[\d,]*(?:\.\d+)?(?= (?:(?:s|ms|rows/s|B|kB|MB)\b|%))")
"""A time, a rate, a share or a size in memory: it differs from run to run, or between machines."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its opening line, its text, and where the text lies."""

    language: str
    info: str
    text: str
    start: int
    end: int


COMPILING: Final = "headrace: compiling for this machine"
"""The line of the first command on a machine; pages show what later ones print."""


def blocks_of(page: str) -> Iterator[Block]:
    """The page's fenced blocks, in order."""
    for match in FENCE.finditer(page):
        yield Block(match[2], match[3], match[4], match.start(4), match.end(4))


@dataclass(frozen=True)
class Command:
    """A command of a console block as it stands there, what it is to print, and what it printed."""

    text: str
    expected: str
    printed: str

    @property
    def as_expected(self) -> bool:
        """Whether it printed what it was to print, where `...` stands for anything."""
        pattern = re.escape(MEASURED.sub("#", self.expected.strip())).replace(r"\.\.\.", ".*")
        return re.fullmatch(pattern, MEASURED.sub("#", self.printed.strip()), re.DOTALL) is not None

    def difference(self) -> str:
        """The command and a unified diff from the page to the run."""
        sides = (self.expected.strip().splitlines(), self.printed.strip().splitlines())
        return self.text + "\n".join(difflib.unified_diff(*sides, "page", "run", lineterm="", n=9))


def run_console(text: str, folder: Path) -> list[Command]:
    """Run a console block's commands, each with the exit code of the one before as `$?`."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"COLUMNS": "110", "NO_COLOR": "1"}
    done = subprocess.CompletedProcess[str]([], 0)
    commands = []
    for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
        typed = "".join(re.findall(r"\A\$ .*\n|(?<=\n)> .*\n", part))
        expected = part.removeprefix(typed)
        done = subprocess.run(
            ["bash", "-c", f"(exit {done.returncode}); " + re.sub(r"^[$>] ", "", typed, flags=re.MULTILINE)],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        lines = (line.rstrip() for line in done.stdout.splitlines())
        printed = "".join(f"{line}\n" for line in lines if not line.startswith(COMPILING))
        commands.append(Command(typed, expected, printed))
    return commands


def run_python(block: Block, names: dict[str, object], place: str, line: int) -> list[str]:
    """Run a block of `>>>` examples among the page's names; what differs."""
    examples = doctest.DocTestParser().get_doctest(block.text, {}, place, place, line)
    examples.globs = names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=report.append, clear_globs=False)
    return ["".join(report)] if report else []


def check_examples(path: Path, write: bool) -> Iterator[str]:
    """Run a page's examples in a fresh folder; yields what differs, or writes it into the page."""
    page = path.read_text()
    changed: list[tuple[Block, str]] = []
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        for block in blocks_of(page):
            line = page.count("\n", 0, block.start)
            place = f"{path.relative_to(ROOT)}:{line + 1}"
            if block.info.startswith("file="):
                (folder / block.info.removeprefix("file=")).write_text(block.text)
            elif block.language == "console":
                commands = run_console(block.text, folder)
                shown = (
                    command.text + (command.expected if command.as_expected else command.printed)
                    for command in commands
                )
                changed.append((block, "".join(shown)))
                if not write:
                    yield from (
                        f"{place}: {command.difference()}" for command in commands if not command.as_expected
                    )
            elif block.language == "python" and block.text.startswith(">>> "):
                yield from run_python(block, names, place, line)
    if write:
        for block, text in reversed(changed):
            page = page[: block.start] + text + page[block.end :]
        path.write_text(page)


def check_links(page: Path) -> Iterator[str]:
    """Yields the page's links to files that do not exist."""
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{page.relative_to(ROOT)}: a link to {target}, which does not exist"


def faults_of(page: Path, *, write: bool) -> list[str]:
    """All that is wrong with a page."""
    return [*check_links(page), *check_examples(page, write)]


def main(arguments: list[str]) -> int:
    """Check the pages named, or all; returns the exit code."""
    write = "--write" in arguments
    pages = [Path(argument).resolve() for argument in arguments if argument != "--write"]
    pages = pages or [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    # A page on each processor: examples wait for the processes that they start.
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for found in pool.map(partial(faults_of, write=write), pages) for fault in found]
    for fault in faults:
        print(fault, end="\n\n")
    print(f"{len(pages)} pages, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
