"""SIGKILL between the commit of an epoch and the sending of its changes: the next server sends each once."""

from __future__ import annotations

from pathlib import Path

from unit.server.killing_for_tests import check_a_kill


def test_a_kill_between_commit_and_send_loses_no_change_and_repeats_none(tmp_path: Path) -> None:
    check_a_kill(tmp_path, "inline")
