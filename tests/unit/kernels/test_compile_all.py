"""`python -m headrace.kernels` compiles every kernel, and reuses what was compiled of the same sources."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from headrace.kernels import __main__ as command
from headrace.kernels import jit

SOURCE = Path(hr.__file__).parent


def kernels_in(path: Path) -> int:
    """How many functions of a module bear `@kernel(...)`."""
    return sum(
        ast.unparse(decorator).startswith("kernel(")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    )


@pytest.mark.slow("loads all modules with kernels")
def test_all_modules_with_kernels_are_found() -> None:
    written = {path: kernels_in(path) for path in SOURCE.rglob("*.py")}
    found = {Path(str(module.__file__)) for module in command.modules()}
    assert {path for path, count in written.items() if count} <= found
    assert len(jit.KERNELS) == sum(written.values()) > 50


def test_the_version_follows_every_source_and_the_bounds_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = command.modules()
    version = command.version_of(modules)
    assert command.version_of(modules) == version
    assert command.version_of(modules[1:]) != version
    config = jit.loaded("numba").config
    monkeypatch.setattr(config, "BOUNDSCHECK", None if config.BOUNDSCHECK else 1)
    assert command.version_of(modules) != version


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Where Numba looks for the kernels of two modules, with files of others."""
    folders = {"p.first": tmp_path / "first", "p.second": tmp_path / "second"}
    for module, folder in folders.items():
        folder.mkdir()
        (folder / f"{module[2:]}.f-1.py311.nbi").write_text("index")
        (folder / f"{module[2:]}.f-1.py311.1.nbc").write_text("code")
        (folder / "other.f-1.py311.nbi").write_text("of another module")
        (folder / f"{module[2:]}.cpython-311.pyc").write_text("no kernel")
    return folders


def test_what_was_compiled_is_there_again(folders: dict[str, Path], tmp_path: Path) -> None:
    command.keep(tmp_path / "kept" / "kernels-v", folders)
    for folder in folders.values():
        for file in folder.glob("*.nb[ic]"):
            file.write_text("of other sources")
    (folders["p.first"] / "first.g-9.py311.nbi").write_text("of a kernel that went")
    command.restore(tmp_path / "kept" / "kernels-v", folders)
    assert sorted(path.name for path in folders["p.first"].iterdir()) == [
        "first.cpython-311.pyc",
        "first.f-1.py311.1.nbc",
        "first.f-1.py311.nbi",
        "other.f-1.py311.nbi",
    ]
    assert (folders["p.second"] / "second.f-1.py311.1.nbc").read_text() == "code"
    assert (folders["p.second"] / "other.f-1.py311.nbi").read_text() == "of other sources"


def test_of_other_sources_nothing_is_left(folders: dict[str, Path], tmp_path: Path) -> None:
    """Numba would take a kernel for fresh whose own file is as it was, though one that it calls is not."""
    command.restore(tmp_path / "kept" / "kernels-unknown", folders)
    assert not list(folders["p.first"].glob("first.*.nb[ic]"))


def test_few_versions_are_kept_and_nothing_of_others_goes(folders: dict[str, Path], tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / "kept" / f"of-others-{number}").mkdir(parents=True)
    for number in range(6):
        command.keep(tmp_path / "kept" / f"kernels-{number}", folders)
        os.utime(tmp_path / "kept" / f"kernels-{number}", (number, number))
    found = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert found == [f"kernels-{number}" for number in range(2, 6)] + [f"of-others-{n}" for n in range(6)]


def test_the_version_follows_constants_and_fields_of_other_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = command.modules()
    version = command.version_of(modules)
    constant = next(
        (kernel.function, name)
        for kernel in jit.KERNELS
        for name in kernel.function.__code__.co_names
        if name == "INFINITY"
    )
    with monkeypatch.context() as patch:
        patch.setitem(constant[0].__globals__, "INFINITY", 5)
        assert command.version_of(modules) != version
    together = next(part.together for kernel in jit.KERNELS for part in kernel.signature if part.together)
    with monkeypatch.context() as patch:
        patch.setattr(together, "_fields", together._fields[::-1])
        assert command.version_of(modules) != version
    assert command.version_of(modules) == version


def test_files_that_are_the_same_are_left_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    """Another process may read them."""
    command.keep(tmp_path / "kept" / "kernels-v", folders)
    before = {path: path.stat().st_ino for folder in folders.values() for path in folder.iterdir()}
    command.restore(tmp_path / "kept" / "kernels-v", folders)
    assert {path: path.stat().st_ino for path in before} == before


def test_a_start_loads_neither_numba_nor_pandas() -> None:
    """They take half of a start, and a process that calls no kernel needs neither."""
    code = (
        "import sys, headrace as hr; hr.connect(runner='inline');"
        "sys.exit(', '.join({'numba', 'pandas', 'asyncio', 'urllib.request'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
