"""Moves: what a phase answers when it is over. The return types of the phases' `handle` are figure 5.2."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from greenline.kernel.identities import ProcId
from greenline.ring.messages import FormToken, Join


class Cause(StrEnum):
    """Why the membership algorithm was invoked."""

    STARTED = "started"
    FOREIGN_MESSAGE = "a foreign message"
    TOKEN_LOSS = "the token is lost"
    MEMBER_LOST_IT = "a member has lost the token"
    FAILED_TO_RECEIVE = "a member fails to receive"
    FORM_FAILED = "the Form token is lost"
    EVS_FAILED = "the new ring's token is lost"


@dataclass(frozen=True, slots=True)
class ToGather:
    cause: Cause
    heard: dict[ProcId, int] = field(default_factory=dict)
    """Representatives that were heard already, with their incarnations."""
    failed: frozenset[ProcId] = frozenset()
    stranger: ProcId | None = None
    """Who set it off: not to be tried again soon if it comes to nothing."""


@dataclass(frozen=True, slots=True)
class ToCommit:
    reps: dict[ProcId, int]
    failed: frozenset[ProcId]
    joins: dict[ProcId, Join]
    tried: frozenset[ProcId]


@dataclass(frozen=True, slots=True)
class ToForm:
    """We have agreed to this Form token, and added ourselves to it."""

    token: FormToken


@dataclass(frozen=True, slots=True)
class ToEVS:
    """All members of the new ring are known, and what each has."""

    token: FormToken
    took: float
    """How long the Form token took to come round."""


@dataclass(frozen=True, slots=True)
class ToOperational:
    """A configuration was installed, or the old one goes on."""

    tried: frozenset[ProcId] = frozenset()
    """Whom we wanted to join."""
