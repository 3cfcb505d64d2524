"""What a reader asks for: said wrongly, it is said what is wrong before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.pipeline.reaching import BadOption
from greenline.pipeline.source_options import Asked, asked

AT = {"at": "127.0.0.1:7420", "user": "ada", "password": "secret"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tabel": "t"}, "there is no option tabel: did you mean table?"),
        ({"schema": "rows"}, "there is no schema rows: write one of bundles, actions, changes"),
        ({"schema": "actions"}, 'say where, by option("archive", DIRECTORY)'),
        ({"schema": "bundles", "table": "t"}, "a table has changes, and no bundles"),
        ({"first": "-1"}, "first='-1' is no position"),
        ({"per_batch": "0"}, "per_batch='0' is no position or number"),
        ({"first": "9", "last": "4"}, "nothing stands between first=9 and last=4"),
        ({"files": "somewhere"}, "either from a cluster"),
        ({"at": ""}, "where is the cluster?"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption) as raised:
        asked({**AT, **options})
    assert words in str(raised.value)


def test_what_is_right_is_taken() -> None:
    plain = asked(AT)
    assert (plain.schema, plain.first, plain.last, plain.archive) == ("bundles", 1, None, None)
    assert "secret" not in repr(plain)
    kept = asked({"archive": "kept", "table": "t", "first": "3", "last": "9"})
    assert kept == Asked(schema="changes", archive=Path("kept").absolute(), table="t", first=3, last=9)
    assert asked({"files": "data/p"}).reach is None
