"""Greenline: replicated SQL that keeps working when the network doesn't."""

__version__ = "0.1.0"
