"""Files beside which Hadoop's checksums lie."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from headrace.runtime.spark.checksums import has_its_checksums


def checksums_of(content: bytes, each: int) -> bytes:
    parts = [content[at : at + each] for at in range(0, len(content), each)]
    return (
        b"crc\0" + each.to_bytes(4, "big") + b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)
    )


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 3_000_000])
@pytest.mark.parametrize("each", [512, 7 * 2**18])
def test_a_file_is_what_its_checksums_say_it_is(tmp_path: Path, size: int, each: int) -> None:
    path, beside = tmp_path / "f.parquet", tmp_path / ".f.parquet.crc"
    content = bytes(at * 7 % 251 for at in range(1000)) * 3000
    content = content[:size]
    path.write_bytes(content)
    assert has_its_checksums(path)
    beside.write_bytes(checksums_of(content, each))
    assert has_its_checksums(path)
    path.write_bytes(content + b"x")
    assert not has_its_checksums(path)
    if content:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert not has_its_checksums(path)
        path.write_bytes(content[:-1])
        assert not has_its_checksums(path)


@pytest.mark.parametrize(
    "said", [b"", b"crc", b"crc\0\0\0\2\0", b"xyz\0\0\0\2\0", b"crc\0\0\0\0\0", b"crc\0\0\0\2\0ab"]
)
def test_what_are_no_checksums_agree_with_nothing(tmp_path: Path, said: bytes) -> None:
    (tmp_path / "f.parquet").write_bytes(b"abc")
    (tmp_path / ".f.parquet.crc").write_bytes(said)
    assert not has_its_checksums(tmp_path / "f.parquet")
