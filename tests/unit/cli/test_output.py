"""Answers on a terminal are fitted to its width, and whole everywhere else."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pyarrow as pa
import pytest

from headrace.cli.output import Format, print_answers

ANSWER = pa.table({"n": [1], "text": ["a text of thirty columns, all "], "more": ["x" * 30]})


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdout", "format_", "line"),
    [
        (Terminal(), Format.TABLE, f"1  a text of thirty …  {'x' * 17}…"),
        (io.StringIO(), Format.TABLE, f"1  a text of thirty columns, all   {'x' * 30}"),
        (Terminal(), Format.CSV, f'1,"a text of thirty columns, all ",{"x" * 30}'),
    ],
)
def test_only_tables_on_a_terminal_are_shortened(
    monkeypatch: pytest.MonkeyPatch, stdout: io.StringIO, format_: Format, line: str
) -> None:
    monkeypatch.setenv("COLUMNS", "41")
    with redirect_stdout(stdout):
        print_answers([("q", ANSWER)], format_, several=False, head=None)
    assert line in stdout.getvalue().splitlines()
