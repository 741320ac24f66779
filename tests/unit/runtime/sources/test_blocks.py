from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.runtime.sources.text import blocks
from headrace.runtime.sources.text.blocks import TextPart, line_blocks


def read(text: bytes, first: int, last: int, tmp_path: Path, body: int = 0) -> list[tuple[int, bytes]]:
    path = tmp_path / "f"
    path.write_bytes(text)
    return [
        (block.offset, block.data) for block in line_blocks(TextPart(path, "f", len(text), body), first, last)
    ]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 9, [(0, b"aa\nbb\ncc\n")]),
        (0, 1, [(0, b"aa\n")]),
        (0, 3, [(0, b"aa\n")]),
        (0, 4, [(0, b"aa\nbb\n")]),
        (1, 3, []),
        (3, 4, [(3, b"bb\n")]),
        (1, 9, [(3, b"bb\ncc\n")]),
        (7, 9, []),
    ],
)
def test_a_line_belongs_to_the_range_in_which_it_starts(
    first: int, last: int, expected: list[tuple[int, bytes]], tmp_path: Path
) -> None:
    assert read(b"aa\nbb\ncc\n", first, last, tmp_path) == expected


def test_lines_before_the_body_are_left_out(tmp_path: Path) -> None:
    assert read(b"head\naa\nbb", 0, 6, tmp_path, body=5) == [(5, b"aa\n")]
    assert read(b"head\naa\nbb", 0, 3, tmp_path, body=5) == []
    assert read(b"head\naa\nbb", 6, 10, tmp_path, body=5) == [(8, b"bb")]


@given(
    lines=st.lists(st.sampled_from([b"", b"a", b"bcd", b"x" * 20]), max_size=8),
    ended=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=4),
)
def test_blocks_are_whole_lines_and_together_the_file(
    lines: list[bytes], ended: bool, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    folder = tmp_path_factory.getbasetemp()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 10)
        patch.setattr(blocks, "_SEARCH_BYTES", 3)
        parts = [part for start, end in pairwise(places) for part in read(text, start, end, folder)]
    assert b"".join(data for _, data in parts) == text
    assert all(data.endswith(b"\n") for _, data in parts[:-1])
    assert all(text[offset:].startswith(data) for offset, data in parts)


def test_a_file_that_has_become_shorter(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\n")
    with pytest.raises(SourceError, match="f: the file has changed"):
        list(line_blocks(TextPart(path, "f", 100, 0), 0, 100))
