"""What the judge makes of rules before it asks them."""

from __future__ import annotations

from greenline.spec.judge import rules_named, tables_needed, tables_of


def names(*rules: str) -> list[str]:
    return [name for name, _ in tables_needed(rules_named(rules))]


def test_only_tables_that_a_rule_reads_and_those_beneath_them_are_made() -> None:
    assert names("evs/0_4") == ["event"]
    assert names("evs/0_4", "evs/vs_01") == ["event", "conf_event"]
    assert names("run") == []
    assert names("evs") == [*(name for name, _ in tables_of("evs")), "certificate"]


def test_the_certificate_is_made_for_who_verifies_it_after_what_it_is_made_of() -> None:
    assert names("evs/1_1")[-1] == "certificate"
    assert {"conf_event", "sent", "delivered"} < set(names("evs/1_1"))
    assert "certificate" not in names("evs/3")
