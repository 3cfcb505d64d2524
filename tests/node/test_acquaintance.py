"""Who a node is, and whom it has met, survives; what cannot be read is not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.node.acquaintance import Acquaintance, Damaged
from greenline.node.sealing import Met


def test_a_node_is_itself_and_remembers_in_its_next_life(tmp_path: Path) -> None:
    first = Acquaintance(tmp_path / "acquaintance", "p")
    first.meet("q", Met(b"uid of q", 3))
    again = Acquaintance(tmp_path / "acquaintance", "p")
    assert again.uid == first.uid
    assert again.met == {"q": Met(b"uid of q", 3)}
    assert Acquaintance(tmp_path / "another", "p").uid != first.uid


def test_another_ones_page_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "acquaintance"
    Acquaintance(path, "p")
    with pytest.raises(Damaged, match="is of the node p, not of q; give q a data directory of its own"):
        Acquaintance(path, "q")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(Damaged, match="bring it back from a copy"):
        Acquaintance(path, "p")


def test_a_page_that_is_gone_while_the_log_is_there_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(Damaged, match="is gone, though there is a log beside it"):
        Acquaintance(tmp_path / "acquaintance", "p")
