"""Processes of Python for tests, forked from one that has loaded Headrace, so that none waits for that.

`run` and `Popen` are those of `subprocess` for commands `[sys.executable, ...]` with `-c`, `-m` or a script.
The process that forks is started with the first of them and ends with the test process. A command does what
it would do by itself, but that modules are loaded already: a test of what is loaded, or when, starts a real
process.

As a program it is the process that forks: it takes commands from a socket, and answers with the number of the
process that carries one out.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_LOADED: Final = (
    "headrace.engine",
    "headrace.cli",
    "headrace.testing",
    "headrace.server.serving",
    "pandas",
    "numba",
)
"""The modules that the process loads which forks."""
_FAULTS: Final = "headrace.runtime.store.crash_points"
_SUBREAPER: Final = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2): orphans below become children of this process."""
_LONGEST: Final = 2**20
_BEYOND: Final = 1_000


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` for a command of Python's; a child of this process, forked by another one."""

    def _execute_child(  # type: ignore[no-untyped-def]
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *others,
    ) -> None:  # fmt: skip
        if sys.platform != "linux":
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags,
                shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *others,
            )  # fmt: skip
            return
        assert not preexec_fn
        assert not shell
        assert args[0] == sys.executable, "a command of this Python"
        # restore_signals, gid, gids, uid, umask, start_new_session, ...
        new_session = bool(others[5])
        streams = [own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        command = {
            "words": [str(word) for word in args[1:]],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "kept": list(pass_fds),
            "new_session": new_session,
        }
        self.pid = _forked(command, [*streams, *pass_fds])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def run(
    command: Sequence[str | Path],
    *,
    input: Any = None,
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` for a command of Python's."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options |= {"stdin": subprocess.PIPE}
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, out, err)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


_lock = threading.Lock()


def _forked(command: Mapping[str, object], descriptors: list[int]) -> int:
    """Have a command carried out by a new child of this process; its number."""
    with _lock:
        forker = _forker(os.getpid())
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        # The process is an orphan as soon as there is one, and so comes to this one.
        assert prctl(_SUBREAPER, 1, 0, 0, 0) == 0
        try:
            socket.send_fds(forker, [json.dumps(command).encode()], descriptors)
            answer = forker.recv(64)
        finally:
            prctl(_SUBREAPER, 0, 0, 0, 0)
        assert answer, "the process that forks has ended"
        return int(answer)


@lru_cache(maxsize=1)
def _forker(process: int) -> socket.socket:
    """The socket to the process that forks for a process of tests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
    command = [sys.executable, __file__, str(theirs.fileno())]
    started = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        started.wait()

    atexit.register(end)
    return ours


def main(number: int) -> None:
    """Fork for whoever is at the other end of a socket, until that end is closed."""
    place = socket.socket(fileno=number)
    for name in _LOADED:
        importlib.import_module(name)
    while True:
        message, descriptors, _, _ = socket.recv_fds(place, _LONGEST, 64)
        if not message:
            os._exit(0)
        reader, writer = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                os.close(reader)
                os.close(writer)
                place.close()
                _carry_out(json.loads(message), descriptors)
            os.write(writer, str(child).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(between, 0)
        place.send(os.read(reader, 64))
        os.close(reader)
        for descriptor in descriptors:
            os.close(descriptor)


def _carry_out(command: Any, descriptors: list[int]) -> None:
    """Be the process of a command: its streams, folder and environment, then its code; ends the process."""
    if command["new_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Beyond all targets first, so that none is in the way of another.
    sources = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _BEYOND) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for source, target in zip(sources, [0, 1, 2, *command["kept"]], strict=True):
        os.dup2(source, target, inheritable=True)
        os.close(source)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(command["environment"])
    time.tzset()
    os.chdir(command["folder"])
    importlib.reload(sys.modules[_FAULTS])
    # What tests have in common can be imported, last of all.
    sys.path.append(sys.path.pop(0))
    sys.path[:0] = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    _end(_status_of(command["words"]))


def _status_of(words: list[str]) -> int:
    try:
        _execute(words)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        return -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _execute(words: list[str]) -> None:
    main_module = sys.modules["__main__"] = ModuleType("__main__")
    match words:
        case ["-c", code, *arguments]:
            sys.argv = ["-c", *arguments]
            sys.path.insert(0, "")
            exec(compile(code, "<string>", "exec"), vars(main_module))
        case ["-m", module, *arguments]:
            sys.argv = [module, *arguments]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *arguments]:
            sys.argv = [script, *arguments]
            sys.path.insert(0, str(Path(script).parent))
            runpy.run_path(script, run_name="__main__")


def _end(status: int) -> None:
    """End as Python does: threads, what is registered for the end, streams."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        status = status or 120
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
