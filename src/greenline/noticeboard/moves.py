"""Moves: what a phase answers when it is over. The return types of the phases' `handle` are the state diagram."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.noticeboard.company import Company


@dataclass(frozen=True, slots=True)
class ToAlone:
    pass


@dataclass(frozen=True, slots=True)
class ToExchanging:
    company: Company


@dataclass(frozen=True, slots=True)
class ToLevel:
    company: Company
