"""Rosters that are forged, old, doubled or hold copied keys: each is refused."""

from __future__ import annotations

import pytest

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.letters import (
    ENTRY_BYTES,
    Alive,
    Call,
    Entries,
    Open,
    Opening,
    Shares,
)
from tacita.aggregation.secure.shares import PRIME, number
from tacita.aggregation.secure.signatures import keys_message
from tacita.aggregation.secure.steps import Step
from tacita.aggregation.secure.window_roster import LOW_ORDER
from tacita.check import TacitaError
from tests.aggregation.secure_attackers import (
    HUB,
    A,
    B,
    C,
    D,
    E,
    answered,
    entries_of,
    new_town,
    ready_town,
    resigned,
    signed,
    tell,
)
from tests.aggregation.secure_parties import (
    question_of,
    signing_key,
)


def test_two_rosters_under_one_attempt_are_refused():
    town = new_town()
    tell(town, A, entries_of(town, 0, 0, [A, B, C, D]))
    with pytest.raises(TacitaError, match="another roster 0"):
        tell(town, A, entries_of(town, 0, 0, [A, B, C, D, E]))
    with pytest.raises(TacitaError, match="another roster 0"):
        tell(town, A, entries_of(town, 0, 1, [A, B, C, D]))
    town.restart(A)
    with pytest.raises(TacitaError, match="another roster 0"):
        tell(town, A, entries_of(town, 0, 0, [A, B, C, D, E]))


def test_an_old_attempt_is_refused():
    town = new_town()
    tell(town, A, entries_of(town, 3, 0, [A, B, C, D]))
    with pytest.raises(TacitaError, match="attempt 2 is older than attempt 3"):
        tell(town, A, entries_of(town, 2, 0, [A, B, C, D, E]))
    with pytest.raises(TacitaError, match="attempt 2 is older than attempt 3"):
        tell(town, A, Call(2, 0))
    with pytest.raises(TacitaError, match="attempt 3 is accepted already"):
        tell(town, A, Call(3, 0))


@pytest.mark.parametrize("done", ["answered", "signed", "opened"])
def test_a_new_attempt_begins_after_all_that_was_said(done):
    town = ready_town()
    if done == "answered":
        answered(town, 1, [A])
    elif done == "signed":
        tell(town, A, Alive(1, town.coordinator.roster.digest, (B, C, D, E)))
    else:
        tell(town, A, signed(town, 1, (B, C, D, E), [B, C, D, E]))
    for start in (0, 1):
        with pytest.raises(TacitaError, match="begin later"):
            tell(town, A, entries_of(town, 1, start, [A, B, C, D]))
        with pytest.raises(TacitaError, match="begin later"):
            tell(town, A, Call(1, start))
    assert tell(town, A, entries_of(town, 1, 2, [A, B, C, D])).sends


def test_a_new_attempt_ends_the_old_one_from_its_start_on():
    town = ready_town()
    tell(town, A, entries_of(town, 1, 2, [A, B, C, D]))
    assert not isinstance(town.agents[A].asked(1, question_of(1)), Step)
    for exchange in (2, 3):
        with pytest.raises(TacitaError, match="attempt 1 is not ready"):
            town.agents[A].asked(exchange, question_of(exchange))


def test_a_forged_roster_is_refused():
    town = new_town()
    good = entries_of(town, 0, 0, [A, B, C, D])
    false = Dealer(town.terms, B, b"of the coordinator's making.....")
    bodies = (good.bodies[0], false.body(0, 0), *good.bodies[2:])
    with pytest.raises(TacitaError, match="keys of 'agent 001' are not signed"):
        tell(town, A, good._replace(bodies=bodies))
    swapped = good._replace(
        bodies=(good.bodies[0], good.bodies[2], good.bodies[1], good.bodies[3]),
        signatures=(
            good.signatures[0],
            good.signatures[2],
            good.signatures[1],
            good.signatures[3],
        ),
    )
    with pytest.raises(TacitaError, match="keys of 'agent 001' are not signed"):
        tell(town, A, swapped)


@pytest.mark.parametrize("attempt, start", [(1, 0), (0, 1)])
def test_keys_of_another_attempt_or_window_do_not_make_a_roster(attempt, start):
    town = new_town(window=2)
    good = entries_of(town, 0, 0, [A, B, C, D])
    old = entries_of(town, attempt, start, [A, B, C, D])
    mixed = good._replace(
        bodies=(*good.bodies[:3], old.bodies[3]),
        signatures=(*good.signatures[:3], old.signatures[3]),
    )
    with pytest.raises(TacitaError, match="keys of 'agent 003' are not signed"):
        tell(town, A, mixed)


def test_a_roster_that_is_too_small_or_without_its_reader_is_refused():
    town = new_town()
    with pytest.raises(TacitaError, match="a roster of 3 agents"):
        tell(town, A, entries_of(town, 0, 0, [A, B, C]))
    with pytest.raises(TacitaError, match="is not in the roster"):
        tell(town, A, entries_of(town, 0, 0, [B, C, D, E]))


def with_key(body: bytes, place: int, key: bytes) -> bytes:
    at = place * ENTRY_BYTES
    return body[:at] + key + body[at + 32 :]


def bad_bodies(good: Entries) -> dict[str, bytes]:
    """What the colluding agent D may publish instead of keys of its own."""
    own, other = good.bodies[3], good.bodies[1]
    spelt = number(other[:32])
    again = (2**255 + spelt).to_bytes(32, "little")
    return {
        "a copied key": with_key(own, 0, other[:32]),
        "a key copied from another exchange": with_key(own, 1, other[:32]),
        "its own key twice": with_key(own, 1, own[:32]),
        "another spelling of a key": with_key(own, 0, again),
        **{
            f"a low order: {value:x}": with_key(own, 2, value.to_bytes(32, "little"))
            for value in LOW_ORDER
        },
        "low order, spelt oddly": with_key(own, 0, PRIME.to_bytes(32, "little")),
    }


def test_public_keys_that_are_copied_or_of_low_order_are_refused():
    town = new_town()
    good = entries_of(town, 0, 0, [A, B, C, D])
    for what, body in bad_bodies(good).items():
        with pytest.raises(TacitaError, match="twice|canonical|low order"):
            tell(town, A, resigned(town, good, D, body))
            pytest.fail(what)


def test_the_coordinator_does_not_put_such_keys_into_a_roster():
    town = new_town()
    good = entries_of(town, 0, 0, [A, B, C, D])
    bad = iter(bad_bodies(good).values())

    def collude(sender, send):
        if (sender, send.kind) != (D, "keys"):
            return send
        body = next(bad)
        message = keys_message(town.terms, 0, 0, body)
        keys = letters.Keys(0, 0, body, signing_key(D).sign(message))
        return send._replace(content=letters.encode(keys, town.terms))

    town.twist = collude
    town.hub_does(lambda: town.coordinator.begin(0))
    for _ in range(len(bad_bodies(good)) - 1):
        town.hub_does(town.coordinator.again)
    assert town.coordinator.awaited == (D,)
    assert len(town.refused) == len(bad_bodies(good))
    # Others can still begin without it.
    town.hub_does(town.coordinator.time_up)
    assert town.coordinator.roster.members == (A, B, C, E)


def test_keys_that_are_not_signed_by_their_sender_keep_nobody_else_waiting():
    town = new_town()

    def forge(sender, send):
        if (sender, send.kind) != (D, "keys"):
            return send
        keys = letters.decode("keys", send.content, town.terms)
        content = letters.encode(keys._replace(signature=bytes(64)), town.terms)
        return send._replace(content=content)

    town.twist = forge
    town.hub_does(lambda: town.coordinator.begin(0))
    assert town.refused == ["the keys of 'agent 003' are not signed by itself"]
    town.hub_does(town.coordinator.time_up)
    assert town.coordinator.serves(0)
    assert town.coordinator.roster.members == (A, B, C, E)


def test_keys_of_an_agent_that_are_not_of_its_secret_are_refused_by_it():
    """As after its secret was lost: it would mask with keys that nobody knows."""
    town = new_town()
    entries = entries_of(town, 0, 0, [A, B, C, D])
    old = Dealer(town.terms, A, b"the secret that was lost........")
    with pytest.raises(TacitaError, match="not those of its secret"):
        tell(town, A, resigned(town, entries, A, old.body(0, 0)))


def test_only_the_coordinator_leads_and_only_agents_deal():
    town = ready_town()
    digest = town.coordinator.roster.digest
    chosen = (B, C, D, E)
    for letter in (
        Call(1, 2),
        Alive(0, digest, chosen),
        Open(0, digest, chosen, (), ()),
    ):
        with pytest.raises(TacitaError, match="may not send"):
            tell(town, A, letter, sender=B)
    shares = Shares(digest, 0, bytes(4 * 64))
    for sender in (HUB, "stranger"):
        with pytest.raises(TacitaError, match="may not send"):
            tell(town, A, shares, sender=sender)
    with pytest.raises(TacitaError, match="may not send"):
        tell(town, A, Opening(0, digest, (A,), (bytes(32),)), sender=B)
