"""The private folder of a process, and what is swept of dead ones."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import warm_processes
from headrace.runtime.store.temporary import LONGEST_SOCKET, new_door, private_folder, sweep_dead

CODE = """
import sys
from headrace.runtime.store.temporary import new_folder
print(new_folder("store"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def process(place: Path) -> subprocess.Popen[str]:
    return warm_processes.Popen(
        [sys.executable, "-c", CODE],
        env=os.environ | {"TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def made_by(running: subprocess.Popen[str]) -> Path:
    assert running.stdout is not None
    return Path(running.stdout.readline().strip())


def test_the_folder_of_a_process_is_private_and_goes_with_it(place: Path) -> None:
    with process(place) as running:
        store = made_by(running)
        folder = store.parent
        assert folder.parent == place
        assert folder.name.startswith(f"headrace-{running.pid}-")
        assert folder.stat().st_mode & 0o777 == store.stat().st_mode & 0o777 == 0o700
        (store / "segment").write_text("rows")
        running.communicate("")
    assert list(place.iterdir()) == []


def test_the_lock_is_closed_when_the_process_ends(place: Path) -> None:
    code = """
import atexit, os
from headrace.runtime.store import temporary
held = []
atexit.register(lambda: print(held[0].lock.closed, held[0].folder.exists()))
held.append(temporary._held_by(os.getpid()))
"""
    command = [sys.executable, "-c", code]
    done = warm_processes.run(
        command, env=os.environ | {"TMPDIR": str(place)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True False\n"


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(place: Path) -> None:
    with process(place) as living, process(place) as killed:
        kept, left = made_by(living), made_by(killed)
        (left / "segment").write_text("rows")
        (left.parent / "link").symlink_to(kept)
        killed.kill()
        killed.wait()
        sweep_dead(place)
        assert list(place.iterdir()) == [kept.parent]
        assert kept.exists()
        living.communicate("")


def test_nothing_else_is_removed(place: Path) -> None:
    (place / "headrace-1-elsewher").mkdir(mode=0o700)
    (place / "headrace-1-elsewher" / "lock").write_text("another machine")
    (place / "headrace-2-unlocked").mkdir(mode=0o700)
    (place / "headrace-2-unlocked" / "rows").write_text("not ours")
    (place / "headrace-3-ofothers").mkdir()
    (place / "headrace-3-ofothers").chmod(0o755)
    (place / "headrace-3-ofothers" / "lock").touch()
    (place / "headrace-store").mkdir(mode=0o700)
    (place / "headrace-store" / "lock").touch()
    outside = place / "outside"
    outside.mkdir(mode=0o700)
    (outside / "lock").touch()
    (place / "headrace-4-linkedto").symlink_to(outside)
    (place / "headrace-5-isafile_").write_text("a file")
    before = sorted(place.rglob("*"))
    sweep_dead(place)
    assert sorted(place.rglob("*")) == before


def test_a_folder_without_its_lock_goes_when_it_is_empty(place: Path) -> None:
    (place / "headrace-1-unlocked").mkdir(mode=0o700)
    sweep_dead(place)
    assert list(place.iterdir()) == []


def test_a_door_is_a_place_where_a_socket_can_be() -> None:
    room = LONGEST_SOCKET - len(os.fsencode(private_folder() / "-12345678" / "door"))
    door = new_door("d" * room)
    assert door is not None
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fsencode(door))
    assert list(door.parent.iterdir()) == [door]
    before = sorted(private_folder().iterdir())
    assert new_door("d" * (room + 1)) is None
    assert sorted(private_folder().iterdir()) == before


def test_a_fork_has_a_folder_of_its_own_and_leaves_ours() -> None:
    ours = private_folder()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(private_folder()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = Path(os.read(reader, 1000).decode())
    assert theirs != ours
    assert theirs.name.startswith(f"headrace-{child}-")
    assert ours.exists()
    os.close(reader)
    os.close(writer)
