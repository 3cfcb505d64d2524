"""Identities: their text forms are distinct, and a name can be part of each."""

from __future__ import annotations

import pytest

from greenline.kernel.identities import ConfId, Configuration, MessageId, TransId, in_order, proc_id


def test_every_identity_has_a_text_of_its_own_form() -> None:
    old, new = ConfId(12, "p"), ConfId(13, "q")

    assert str(old) == "p.12"
    assert str(TransId(old, new)) == "p.12>q.13"
    assert str(MessageId("p", 2, 17)) == "p:2:17"
    assert str(Configuration(old, ("p", "q"))) == "p.12 {p q}"


def test_configurations_are_ordered_by_their_counter_first() -> None:
    assert sorted([ConfId(2, "a"), ConfId(1, "z"), ConfId(1, "b")]) == [ConfId(1, "b"), ConfId(1, "z"), ConfId(2, "a")]


def test_members_leave_in_sorted_order() -> None:
    assert in_order({"r", "p", "q"}) == ("p", "q", "r")


@pytest.mark.parametrize("name", ["p", "oslo-1", "N_2", "x" * 32])
def test_a_machine_may_be_called_so(name: str) -> None:
    assert proc_id(name) == name


@pytest.mark.parametrize("name", ["", "p q", "p.1", "p:1", "p>q", "*", "x" * 33, "ø"])
def test_a_name_that_would_garble_other_identities_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a process"):
        proc_id(name)
