"""A real federation: the same algorithms between machines that do not trust the post.

Parties are long-lived programs around `algorithm.local` and `combine`. Letters are
idempotent, signed and encrypted end to end; a party writes its ledger, then its
checkpoint, then sends, so that any of them can be killed at any moment and go on. What
carries the letters (`Post`) may lose, repeat, delay and reorder them.

`Hub.create` makes a federation, `coordinate` proposes a run, `join` takes part in it.
Both block until the run is over; each may run in a thread of its own.
"""

from tacita.federation.agent import Agent, join
from tacita.federation.coordinator import Coordinator, coordinate
from tacita.federation.hub import Hub
from tacita.federation.invitation import (
    Invitation,
    Request,
    fingerprint,
    make_request,
)
from tacita.federation.kept_letters import graph_table
from tacita.federation.policy import Policy
from tacita.federation.post import Post
from tacita.federation.program import Result
from tacita.federation.roster import Member, Roster
from tacita.federation.seal import PrivateKeys, PublicKeys
from tacita.federation.thread_post import PostRoom

__all__ = [
    "Agent",
    "Coordinator",
    "Hub",
    "Invitation",
    "Member",
    "Policy",
    "Post",
    "PostRoom",
    "PrivateKeys",
    "PublicKeys",
    "Request",
    "Result",
    "Roster",
    "coordinate",
    "fingerprint",
    "graph_table",
    "join",
    "make_request",
]
