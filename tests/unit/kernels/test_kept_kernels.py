"""Where compiled kernels are kept: also where neither the sources' folder nor the user's can be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from headrace.kernels import jit
from headrace.kernels.kept import Compiling, own_folder


def add(a: int, b: int) -> int:
    return a + b


class Numba:
    """A double of Numba: what it keeps lies beside the source, in CACHE_DIR, or nowhere."""

    def __init__(self, beside: Path | None) -> None:
        self.config = SimpleNamespace(CACHE_DIR="")
        self.beside = beside
        self.kept: list[Path] = []
        self.full = False

    def njit(self, types: object = None, *, cache: bool = False, nogil: bool = False) -> Any:
        def decorated(function: FunctionType) -> Any:
            folder = self._folder() if cache else None
            if types is not None and folder is not None:
                if self.full:
                    raise OSError(28, "No space left on device")
                self.kept.append(folder)
            return SimpleNamespace(stats=SimpleNamespace(cache_path=folder, cache_hits={}))

        return decorated

    def _folder(self) -> Path:
        if self.config.CACHE_DIR:
            return Path(self.config.CACHE_DIR, "kernels")
        if self.beside is None:
            raise RuntimeError("cannot cache function 'add': no locator available for file 'x.py'")
        return self.beside


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_is_compiled_is_kept_beside_its_source(tmp_path: Path) -> None:
    numba = Numba(tmp_path)
    Compiling(numba).compiled(add, ("int64", "int64"))
    assert numba.kept == [tmp_path]


@pytest.mark.parametrize("in_caches", [True, False])
def test_where_that_cannot_be_written_there_is_a_folder_of_our_own(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_caches: bool
) -> None:
    if in_caches:
        monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "caches"))
    numba = Numba(None)
    compiling = Compiling(numba)
    for _ in range(2):
        compiling.compiled(add, ("int64", "int64"))
    own = temporary / ("caches/headrace/compiled" if in_caches else f"headrace-compiled-{os.getuid()}")
    assert numba.kept == [own / "kernels"] * 2
    assert own.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == "headrace: compiling for this machine, once\n"


def test_without_any_folder_it_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    numba = Numba(None)
    compiling = Compiling(numba)
    assert compiling.compiled(add, ("int64", "int64")) is not None
    assert (compiling.keeps, numba.kept) == (False, [])
    assert "at every start: nothing can be kept, unless NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_with_a_full_disk_it_is_compiled_all_the_same(tmp_path: Path) -> None:
    numba = Numba(tmp_path)
    numba.full = True
    assert Compiling(numba).compiled(add, ("int64", "int64")) is not None


@pytest.mark.parametrize("bad", ["others may write", "a link"])
def test_a_folder_in_which_others_may_have_a_hand_is_not_used(temporary: Path, bad: str) -> None:
    place = temporary / f"headrace-compiled-{os.getuid()}"
    if bad == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(temporary / "elsewhere")
    else:
        place.mkdir()
        place.chmod(0o777)
    assert own_folder() is None


def test_what_others_have_compiled_beside_the_source_is_taken_over(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = temporary / "source.py"
    source.write_text("def twice(a):\n    return 2 * a\n")
    beside = temporary / "__pycache__"
    beside.mkdir()
    for name in ("source.twice-1.py311.nbi", "source.twice-1.py311.1.nbc", "source.other-9.py311.nbi"):
        (beside / name).write_text(name)
    found: dict[str, FunctionType] = {}
    exec(compile(source.read_text(), str(source), "exec"), {}, found)
    numba = Numba(None)
    own = temporary / f"headrace-compiled-{os.getuid()}" / "kernels"
    own.mkdir(parents=True)
    own.parent.chmod(0o700)
    Compiling(numba).compiled(found["twice"], ("int64",))
    assert sorted(path.name for path in own.iterdir()) == [
        "source.twice-1.py311.1.nbc",
        "source.twice-1.py311.nbi",
    ]


def test_kernels_of_this_machine_are_kept_where_they_can_be() -> None:
    from headrace.kernels.rows import hashing

    kernels = [one.function for one in jit.KERNELS if one.function.__module__ == hashing.__name__]
    assert jit.compiling().folder_of(kernels[0]) is not None
