"""`headrace shell` at a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

_READY = r"\x1b\[\?2004h"
"""What a terminal is sent when something can be typed: let pasted text be known as such."""


class Typist:
    """Types into a shell at a terminal, and reads what it shows."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "HEADRACE_HISTORY": str(folder / "history"),
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "PAGER": "cat",
            "TERM": "xterm-256color",
        }
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "headrace", "shell", "--runner", "inline"],
            env=environment,
            cwd=folder,
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=60,
        )

    def ready(self) -> str:
        """What is shown until something can be typed."""
        self.process.expect(_READY)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.process.before or "")

    def type(self, text: str) -> str:
        """What is shown after a text until something can be typed again."""
        self.process.send(text)
        return self.ready()


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    typist = Typist(tmp_path)
    yield typist
    typist.process.close(force=True)


def test_a_session(typist: Typist, tmp_path: Path) -> None:
    assert "\\? lists the commands" in typist.ready()
    # Enter ends what is complete, and nothing else.
    assert "done" in typist.type(
        "CREATE STREAM s (ts BIGINT, item STRING, v BIGINT)\r FROM push TIMESTAMP BY ts;\r"
    )
    made = typist.type("CREATE QUERY q AS SELECT item, SUM(v) AS t FROM s [RANGE 10] GROUP BY item;\r")
    assert "q: \\run or \\watch q shows its answer" in made
    assert "the run goes on in the background" in made
    assert "committed" in typist.type(
        '\\push s [{"ts": 1, "item": "pen", "v": 3}, {"ts": 5, "item": "cup"}]\r'
    )

    typist.process.send("\\watch q\r")
    typist.process.expect(r"final below 5")
    typist.process.expect(r"pen +3")
    typist.process.sendintr()
    watched = typist.ready()
    assert "pen   3" in watched  # it stays on the screen
    # Ctrl-C has ended the watching, and not the run.
    assert "committed" in typist.type('\\push s {"ts": 7, "item": "pen", "v": 1}\r')
    assert "final below 7" in typist.type("\\d q\r")

    # Of a stream of events the newest rows are watched.
    typist.type("CREATE QUERY pens AS SELECT v FROM s WHERE item = 'pen';\r")
    typist.type('\\push s [{"ts": 8, "item": "pen", "v": 7}, {"ts": 9, "item": "pen", "v": 8}]\r')
    typist.process.send("\\watch pens\r")
    typist.process.expect(r"pens: the newest, .*final below 9")
    typist.process.sendintr()
    assert re.search(r"\n7 +8\r\n\(1 row\)", typist.ready())

    # The last instant of a window is said by its end, and columns of users are what they are.
    typist.type(
        "CREATE STREAM t (at TIMESTAMP) FROM push TIMESTAMP BY at; CREATE QUERY w AS SELECT MAX(at) AS m,\r"
        " COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR)\r"
        " GROUP BY window_start, window_end;\r"
    )
    typist.type('\\push t [{"at": "2024-05-01T09:59:59.999999Z"}, {"at": "2024-05-01T11:30:00Z"}]\r')
    typist.process.send("\\watch w\r")
    typist.process.expect(r"2024-05-01T09:59:59.999999Z +1 +just before 2024-05-01T10:00:00Z")
    typist.process.sendintr()
    typist.ready()

    wrong = typist.type("SELECT item\r FROM nothing;\r")
    assert "2 |  FROM nothing;\r\n          ^" in wrong
    assert "error: there is no stream nothing" in wrong

    typist.type("SELECT nothing\x03")  # drops what has been typed
    # Tab completes a name that only this statement's stream has.
    typist.process.send("SELECT v FROM s WHERE ite\t")
    # The letter that was missing is drawn alone, or with what had not been drawn before it.
    typist.process.expect(r"item|\[0m ?i?t?e?m\x1b")
    assert "shows its answer" in typist.type(" = 'cup';\r")
    # A long answer goes to the pager, here `cat`.
    assert "what can be typed here" in typist.type("\\?\r")
    typist.process.send("\\q\r")
    typist.process.expect(pexpect.EOF)
    typist.process.wait()
    assert typist.process.exitstatus == 0
    kept = (tmp_path / "history").read_text()
    assert "+\\watch q\n" in kept
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0
