"""Moves: what a state answers when it is over. The return types of the states' `handle` are figure 6.5."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.identities import ProcId
from greenline.replication.exchange import Exchange
from greenline.replication.messages import CPC
from greenline.replication.server import Component, Met, Place


@dataclass(frozen=True, slots=True)
class ToNonPrim:
    """`place` is None before the first configuration of a life; `is_transitional`: a new configuration is near."""

    place: Place | None
    is_transitional: bool
    far_from: Exchange | None = None
    """The exchange that we were left out of, as we are far behind, or new."""
    met: Met | None = None
    """Who took part in an exchange that found no quorum."""
    others: tuple[ProcId, ...] = ()
    """Who makes a component without us, as we have left."""


@dataclass(frozen=True, slots=True)
class ToExchangeStates:
    place: Place


@dataclass(frozen=True, slots=True)
class ToExchangeActions:
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class ToConstruct:
    component: Component


@dataclass(frozen=True, slots=True)
class ToNo:
    component: Component
    queue: bytes
    cpcs: dict[str, CPC]


@dataclass(frozen=True, slots=True)
class ToUn:
    component: Component


@dataclass(frozen=True, slots=True)
class ToRegPrim:
    component: Component


@dataclass(frozen=True, slots=True)
class ToTransPrim:
    component: Component


Move = ToNonPrim | ToExchangeStates | ToExchangeActions | ToConstruct | ToNo | ToUn | ToRegPrim | ToTransPrim
