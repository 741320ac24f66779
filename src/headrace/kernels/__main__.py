"""`python -m headrace.kernels`: compile all kernels, so that nobody waits for one later.

A kernel is compiled at its first call on a machine, which takes half a second. In an image, or before many
processes start at once, this is better done beforehand.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import pkgutil
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from headrace.kernels import jit

_KEPT: Final = 4
"""Of so many versions what was compiled is kept in a folder."""
_NAME: Final = "kernels-"
"""The beginning of the names of folders in which that is."""
_STAMPED_BY_CONTENT: Final = (0, 68)
"""The version of Numba from which on it knows a source by its content, no longer by its age."""


def modules() -> list[ModuleType]:
    """The modules that have kernels, loaded."""
    found = []
    package = jit.__name__.partition(".")[0]
    for module in pkgutil.walk_packages(sys.modules[package].__path__, f"{package}."):
        place = find_spec(module.name)
        if place and place.origin and f"from {jit.__name__} import" in Path(place.origin).read_text():
            found.append(importlib.import_module(module.name))
    return found


def version_of(modules: list[ModuleType]) -> str:
    """A digest of what compiled kernels depend on: sources, constants, versions, processor, bounds checks."""
    numba, binding = jit.loaded("numba"), jit.loaded("llvmlite.binding")
    paths = [Path(str(module.__file__)) for module in (jit, *modules)]
    said = [
        sys.version,
        platform.platform(),
        *(jit.loaded(name).__version__ for name in ("numba", "llvmlite", "numpy")),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        str(numba.config.BOUNDSCHECK),
        *(path.read_text() for path in paths),
        *_constants(),
    ]
    if tuple(map(int, numba.__version__.split(".")[:2])) < _STAMPED_BY_CONTENT:
        said += [str(path.stat().st_mtime) for path in paths]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]


def _constants() -> Iterator[str]:
    """Parts of other modules that are compiled into kernels: constants, and the fields of arguments."""
    functions = [*(kernel.function for kernel in jit.KERNELS), *jit.inner_functions()]
    for function in functions:
        assert isinstance(function, FunctionType)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int | float | str | bytes | tuple):
                yield f"{function.__module__}.{name} = {value!r}"
    for kernel in jit.KERNELS:
        for argument in kernel.signature:
            if argument.together is not None:
                yield f"{argument.together.__qualname__}: {argument.together._fields}"


def folders_of(modules: list[ModuleType]) -> dict[str, Path]:
    """Where Numba looks for the compiled kernels of each module."""
    functions = {kernel.function.__module__: kernel.function for kernel in jit.KERNELS}
    found = {
        module.__name__: jit.compiling().folder_of(functions[module.__name__])
        for module in modules
        if module.__name__ in functions
    }
    return {name: folder for name, folder in found.items() if folder is not None}


def files_of(module: str, folder: Path) -> dict[str, Path]:
    """The files with what was compiled of a module, by their names."""
    return {path.name: path for path in folder.glob(f"{module.rpartition('.')[2]}.*.nb[ic]")}


def restore(kept: Path, folders: dict[str, Path]) -> None:
    """Put what was compiled where Numba looks, and only that: it does not see what changed in other files.

    A file that is the same stays, and another one is replaced as a whole: other processes may read it.
    """
    for module, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        there, wanted = files_of(module, folder), files_of(module, kept / module)
        for name in there.keys() - wanted.keys():
            there[name].unlink(missing_ok=True)
        for name, path in wanted.items():
            if name not in there or there[name].read_bytes() != path.read_bytes():
                draft = folder / f".{name}.{os.getpid()}"
                shutil.copyfile(path, draft)
                draft.replace(folder / name)


def keep(kept: Path, folders: dict[str, Path]) -> None:
    """Keep what was compiled; of the versions in the same folder the newest."""
    draft = kept.with_name(f".{kept.name}.{os.getpid()}")
    for module, folder in folders.items():
        (draft / module).mkdir(parents=True)
        for name, path in files_of(module, folder).items():
            shutil.copyfile(path, draft / module / name)
    shutil.rmtree(kept, ignore_errors=True)
    draft.rename(kept)
    versions = sorted(kept.parent.glob(f"{_NAME}*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in versions[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let no other process take from a folder, compile and keep meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{_NAME}lock").open("w") as lock:
        if sys.platform != "win32":
            locks = importlib.import_module("fcntl")
            locks.flock(lock, locks.LOCK_EX)
        yield


def _compile(number: int) -> None:
    jit.KERNELS[number].compiled()


def compile_all() -> int:
    """Compile the kernels on all processors that this process may use, or load them; how many there are."""
    count = len(jit.KERNELS)
    jit.compiling().announced = True
    if not hasattr(os, "sched_getaffinity"):
        for number in range(count):
            _compile(number)
        return count
    with ProcessPoolExecutor(min(len(os.sched_getaffinity(0)), count), get_context("fork")) as pool:
        for done in as_completed([pool.submit(_compile, number) for number in range(count)]):
            done.result()
    return count


def compile_and_keep(folder: Path, loaded: list[ModuleType]) -> int:
    """Compile the kernels, or take them from a folder if they were kept there; how many there are."""
    folders, kept = folders_of(loaded), folder / f"{_NAME}{version_of(loaded)}"
    with alone(folder):
        restore(kept, folders)
        count = compile_all()
        if not kept.exists():
            keep(kept, folders)
    return count


def kept_in() -> Path | None:
    """A folder in which what is compiled is kept, that of the first kernel; None where it is not kept."""
    modules()
    return jit.compiling().folder_of(jit.KERNELS[0].function)


def compile_every() -> str:
    """Compile all kernels where they are kept; what was done, in one sentence."""
    begin = time.perf_counter()
    modules()
    return f"{compile_all()} kernels are compiled, in {time.perf_counter() - begin:.1f} s"


def main() -> None:
    """Compile all kernels."""
    parser = argparse.ArgumentParser(prog="python -m headrace.kernels", description="Compile all kernels.")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep there what is compiled, and take it from there while kernels and versions are the same",
    )
    folder: Path | None = parser.parse_args().keep
    if folder is not None:
        try:
            compile_and_keep(folder, modules())
        except OSError as error:
            print(f"the kernels are not kept in {folder}: {error.strerror}", file=sys.stderr)
    print(compile_every())


if __name__ == "__main__":
    main()
