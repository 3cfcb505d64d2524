"""Seeded bugs, kept outside the cores: simulation with the rules of `spec/` must catch every one of them."""
