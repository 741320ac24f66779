"""What a run shows on a terminal, and that it shows nothing elsewhere."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stderr, redirect_stdout

import pytest

from headrace.cli.progress import progress_bar, waiting


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("wanted", [True, False])
def test_a_terminal_shows_what_takes_a_while_if_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output, errors = Terminal(), Terminal()
    with redirect_stdout(output), redirect_stderr(errors):
        with waiting(wanted, "starting Spark"):
            deadline = time.monotonic() + 30
            while wanted and "starting Spark ..." not in errors.getvalue():
                assert time.monotonic() < deadline, errors.getvalue()
        with progress_bar(wanted) as show:
            assert (show is not None) == wanted
    assert ("running the first epoch" in errors.getvalue()) == wanted
    assert wanted or not errors.getvalue()
    assert output.getvalue() == ""


def test_a_pipe_gets_nothing() -> None:
    errors = io.StringIO()
    with redirect_stderr(errors), waiting(True, "starting Spark"), progress_bar(True) as show:
        assert show is None
    assert errors.getvalue() == ""
