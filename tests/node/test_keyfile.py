"""A key file is for one user's eyes, is written whole or not at all, and says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.node import keyfile
from greenline.node.keyfile import BadKeyFile, Kept
from greenline.node.sealing import Keyring
from tests.node.places import KEY, key_file

RING = Keyring({1: b"1" * 32, 2: b"2" * 32}, 2)


def test_both_forms_are_read_and_what_was_written_comes_back(tmp_path: Path) -> None:
    path = key_file(tmp_path, KEY + "\n")
    assert keyfile.read(path) == Kept(Keyring({1: bytes.fromhex(KEY)}, 1), 0)
    keyfile.write(path, Kept(RING, 7))
    assert keyfile.read(path) == Kept(RING, 7)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.key"], "nothing is left beside it"


def test_a_file_that_others_may_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    for mode in (0o640, 0o604, 0o622):
        path.chmod(mode)
        with pytest.raises(BadKeyFile, match=rf"others may read the key file .*; chmod 600 {path}"):
            keyfile.read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no key; it should be 64 hexadecimal digits"),
        (KEY[:-1], "holds no key"),
        (KEY[:-1] + "g", "holds no key"),
        ("current = ", "holds no key"),
        ("current = 1", "holds no key"),
        ("current = 1\n[keys]\n1 = 5", "holds no key"),
        (f'current = 2\n[keys]\n1 = "{KEY}"', "current = 2 is none of the keys 1; name one of them"),
        (f'current = 1\n[keys]\nx = "{KEY}"', "a key is numbered from 1 to 255, and not 'x'"),
        (f'current = 256\n[keys]\n256 = "{KEY}"', "a key is numbered from 1 to 255, and not '256'"),
    ],
)
def test_what_is_no_key_is_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    path = key_file(tmp_path, text)
    with pytest.raises(BadKeyFile) as mistake:
        keyfile.read(path)
    assert said in str(mistake.value)
    assert "\n" not in str(mistake.value)
    path.write_bytes(b"\xff" * 32)
    with pytest.raises(BadKeyFile, match="holds no key"):
        keyfile.read(path)
