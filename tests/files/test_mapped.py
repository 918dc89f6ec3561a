import pytest

from unspool.core.errors import FormatError
from unspool.files.mapped import foreign, map_file


def test_the_bytes_of_a_file_read_only(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\0\1\xff")
    data = map_file(path)
    assert data.tolist() == [0, 1, 255] and not data.flags.writeable and not data.flags.owndata


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(FormatError, match="empty: fetch it again"):
        map_file(tmp_path / "x")


def test_a_device_is_refused():
    with pytest.raises(FormatError, match="not a plain file"):
        map_file("/dev/zero")


@pytest.mark.parametrize(("start", "what"), [
    (b"\x80\x04\x95", "a pickle"), (b"PK\x03\x04", "zip"), (b"\x89HDF\r\n", "HDF5"),
    (b"<!DOCTYPE html>", "web page"), (b"version https://git-lfs.github", "LFS"),
])
def test_known_foreigners_are_named(start, what):
    assert what in foreign(start)


@pytest.mark.parametrize("start", [b"", b"GGUF", b'@\0\0\0\0\0\0\0{"', b"\x80\0\0\0\0\0\0\0{"])
def test_weights_are_not_foreign(start):
    assert foreign(start) is None
