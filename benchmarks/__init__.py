"""Benchmarks: the figures that the documentation states, measured. `make bench` runs them all."""
