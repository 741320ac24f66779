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
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Final

from headrace.kernels import jit

_KEPT: Final = 4
"""Of so many versions what was compiled is kept in a folder."""


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
    """A digest of what compiled kernels depend on: sources, versions, the processor, bounds checks."""
    numba, binding = jit.loaded("numba"), jit.loaded("llvmlite.binding")
    said = [
        sys.version,
        platform.platform(),
        *(jit.loaded(name).__version__ for name in ("numba", "llvmlite", "numpy")),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        str(numba.config.BOUNDSCHECK),
        *(Path(str(module.__file__)).read_text() for module in (jit, *modules)),
    ]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]


def folders_of(modules: list[ModuleType]) -> dict[str, Path]:
    """Where Numba looks for the compiled kernels of each module."""
    functions = [*(function for function, _ in jit.KERNELS), *jit.inner_functions()]
    places = {function.__module__: function for function in functions}
    njit = jit.loaded("numba").njit
    return {
        module.__name__: Path(njit(cache=True)(places[module.__name__]).stats.cache_path)
        for module in modules
        if module.__name__ in places
    }


def files_of(module: str, folder: Path) -> Iterator[Path]:
    """What was compiled of a module."""
    yield from folder.glob(f"{module.rpartition('.')[2]}.*.nb[ic]")


def restore(kept: Path, folders: dict[str, Path]) -> None:
    """Put what was compiled where Numba looks, and only that: it does not see what changed in other files."""
    for module, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        for old in files_of(module, folder):
            old.unlink()
        for file in (kept / module).glob("*"):
            shutil.copy2(file, folder)


def keep(kept: Path, folders: dict[str, Path]) -> None:
    """Keep what was compiled; of the versions in the same folder the newest."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=kept.parent))
    for module, folder in folders.items():
        (draft / module).mkdir()
        for file in files_of(module, folder):
            shutil.copy2(file, draft / module)
    if kept.exists():
        shutil.rmtree(draft)
    else:
        draft.rename(kept)
    versions = sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in versions[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _compile(number: int) -> None:
    jit.KERNELS[number][1]()


def compile_all() -> int:
    """Compile the kernels on all processors, or load what was compiled; how many there are."""
    count = len(jit.KERNELS)
    processors = min(os.cpu_count() or 1, count)
    if processors > 1 and hasattr(os, "fork"):
        with get_context("fork").Pool(processors) as pool:
            for done, _ in enumerate(pool.imap_unordered(_compile, range(count)), start=1):
                if sys.stderr.isatty():
                    print(f"\r{done} of {count} kernels", end="", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(end="\r", file=sys.stderr)
    else:
        for number in range(count):
            _compile(number)
    return count


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
    begin = time.perf_counter()
    loaded = modules()
    if folder is None:
        count = compile_all()
    else:
        folders, kept = folders_of(loaded), folder / version_of(loaded)
        restore(kept, folders)
        count = compile_all()
        keep(kept, folders)
    print(f"{count} kernels are compiled, in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
