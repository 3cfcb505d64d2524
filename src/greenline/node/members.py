"""Members: where everybody is, as this node knows it: what its file names, and whoever came since.

Where a newcomer is, is ordered like everything else, and stands in a table of the replicated database; so a node that
was away learns it with the rest, and one that begins again finds it there.
"""

from __future__ import annotations

import asyncio

from greenline.kernel.identities import ProcId
from greenline.kernel.statements import Member, Reply, Result
from greenline.node.attendant import appointing
from greenline.node.bootstrap import CannotJoin, Known, place_of
from greenline.node.config import Checked, address_of, members_of, written
from greenline.node.desk import Desk
from greenline.node.driver import Node
from greenline.node.edge import Told
from greenline.node.logs import Logger
from greenline.node.transport import Address
from greenline.replication.port import Level, Refused, Replied, Unanswered

APPOINTS_WITHIN_S = 10.0


class Members:
    def __init__(self, config: Checked, log: Logger) -> None:
        self.known = Known(dict(config.addresses), dict(config.admins), dict(config.clients))
        self._log = log
        self._learned_at = -1
        self._overheard: set[ProcId] = set()
        """Members of whom only a packet has told where they are: the order knows better."""

    def learn(self, desk: Desk, node: Node) -> None:
        """Look whether the order names somebody whom we do not know, if it has grown."""

        def on_rows(reply: Reply) -> None:
            for row in reply.rows if isinstance(reply, Result) else ():
                member = Member(*row)
                if _why_nowhere(member, self.known) is None:
                    self.introduce(node, member)

        if desk.is_open and desk.durable_green != self._learned_at:
            self._learned_at = desk.durable_green
            desk.look_up("SELECT name, address, admin, clients FROM greenline_members", (), on_rows)

    def introduce(self, node: Node, member: Member) -> None:
        """From now on we hear it, and speak to it."""
        if member.name in self.known.addresses and member.name not in self._overheard:
            return
        self._overheard.discard(member.name)
        self.known.addresses[member.name] = address_of("address", member.address)
        self.known.admins[member.name] = address_of("admin", member.admin)
        self.known.clients[member.name] = address_of("clients", member.clients)
        node.introduce(self.known.addresses)
        self._log.info("a new member", name=member.name, address=member.address)

    def overhear(self, desk: Desk | None, node: Node, name: ProcId, address: Address) -> None:
        """Somebody who has the cluster's key speaks under a name that we do not know: it came while we were away.

        The order will say so, but to be in it we must be able to hear everybody who is.
        """
        if desk is not None and name not in desk.gone:
            self.introduce(node, place_of(name, address))
            self._overheard.add(name)

    async def appoint(self, desk: Desk | None, member: Member) -> None:
        """Until it is ordered where this member is; or why it cannot be."""
        if desk is None:
            raise CannotJoin("this cluster has no database, so its members are those of its files; add it to [members]")
        if (problem := _why_nowhere(member, self.known)) is not None:
            raise CannotJoin(problem)
        over: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        desk.submit(
            appointing(member, desk), 1, Level.LOCAL, lambda told: None if over.done() else over.set_result(told)
        )
        try:
            told = await asyncio.wait_for(over, APPOINTS_WITHIN_S)
        except TimeoutError:
            raise CannotJoin("there is no primary component now, so nobody can be let in; try again later") from None
        if isinstance(told, Refused | Unanswered):
            raise CannotJoin(f"this node cannot let anybody in now: {told.reason}")
        assert isinstance(told, Replied), "a submission is answered"


def _why_nowhere(member: Member, known: Known) -> str | None:
    """Why nobody could be reached there. What is ordered was not checked by us."""
    try:
        members_of({**{name: written(at) for name, at in known.addresses.items()}, member.name: member.address}, "")
        address_of("admin", member.admin)
        address_of("clients", member.clients)
    except ValueError as error:
        return str(error)
    return None
