"""Attacks by the coordinator, by colluding agents, by old backups: each must fail."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from tacita.aggregation.secure import letters, masks
from tacita.aggregation.secure.dealing import Dealer
from tacita.aggregation.secure.letters import (
    ENTRY_BYTES,
    Alive,
    Call,
    Entries,
    Letter,
    Open,
    Opening,
    Shares,
)
from tacita.aggregation.secure.roster import LOW_ORDER
from tacita.aggregation.secure.secure_agent import Wanted
from tacita.aggregation.secure.shares import PRIME, join, number
from tacita.aggregation.secure.signatures import keys_message, set_message
from tacita.aggregation.secure.steps import Send, Step, Sum, Void
from tacita.check import TacitaError
from tests.aggregation.secure_parties import (
    Town,
    letter_of,
    question_of,
    signing_key,
    terms_of,
)

A, B, C, D, E = (f"agent {k:03d}" for k in range(5))
HUB = "hub"


def ready_town(agents: int = 5, **settings) -> Town:
    town = Town(terms_of(agents, **{"least": 4, "colluding": 1} | settings))
    town.set_up()
    return town


def tell(town: Town, name: str, letter: Letter, sender: str = HUB) -> Step:
    """Hand a letter to an agent, let it write, and look at its step."""
    content = letters.encode(letter, town.terms)
    step = town.agents[name].heard(sender, letters.kind_of(letter), content)
    for write in step.writes:
        town.disks[name].write(write)
    town.agents[name].release(step)
    return step


def answered(town: Town, exchange: int, names) -> dict[str, np.ndarray]:
    """Answers that a coordinator who plays its own game has got out of agents."""
    found = {}
    for name in names:
        step = town.reply(name, exchange, question_of(exchange))
        for write in step.writes:
            town.disks[name].write(write)
        (send,) = town.agents[name].release(step)
        found[name] = send.content
    return found


def signed(town: Town, exchange: int, chosen, signers) -> Open:
    digest = town.coordinator.roster.digest
    message = set_message(town.terms, digest, exchange, chosen)
    signatures = tuple(signing_key(n).sign(message) for n in signers)
    return Open(exchange, digest, tuple(chosen), tuple(signers), signatures)


# The coordinator asks for too much.


def test_another_question_in_an_answered_exchange_gets_the_same_letter():
    town = ready_town()
    first = answered(town, 0, [A])[A]
    other = town.agents[A].asked(0, hashlib.sha256(b"something else").digest())
    assert isinstance(other, Step) and not other.writes
    np.testing.assert_array_equal(other.sends[0].content, first)


def test_another_question_that_was_prepared_before_the_first_answer():
    """Two questions come at once; the letter of the second is made, and not sent."""
    town = ready_town()
    agent = town.agents[A]
    wanted = [agent.asked(0, q) for q in (question_of(0), question_of(1))]
    steps = [agent.answer(w, letter_of(A, w, town.terms)) for w in wanted]
    with pytest.raises(TacitaError, match="overtaken"):
        agent.release(steps[0])
    agent.release(steps[1])
    with pytest.raises(TacitaError, match="another answer 0"):
        agent._records.apply(steps[0].writes)


def test_a_letter_that_was_made_for_a_roster_that_is_over_is_not_sent():
    town = ready_town()
    wanted = town.agents[A].asked(2, question_of(2))
    town.set_up(1)
    with pytest.raises(TacitaError, match="another roster by now"):
        town.agents[A].answer(wanted, letter_of(A, wanted, town.terms))


def test_two_sets_in_one_exchange_are_refused():
    town = ready_town()
    answered(town, 0, [A, B, C, D, E])
    digest = town.coordinator.roster.digest
    tell(town, A, Alive(0, digest, (A, B, C, D)))
    tell(town, A, Alive(0, digest, (A, B, C, D)))
    for chosen in ((A, B, C, E), (A, B, C, D, E)):
        with pytest.raises(TacitaError, match="another set 0"):
            tell(town, A, Alive(0, digest, chosen))
        with pytest.raises(TacitaError, match="another set 0"):
            tell(town, A, signed(town, 0, chosen, [A, B, C, D]))
    step = tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D]))
    assert step.sends[0].kind == "opening"
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, signed(town, 0, (A, B, C, E), [A, B, C, D]))


def test_an_opening_that_was_given_is_given_again_and_no_other_share_is_left():
    town = ready_town()
    answered(town, 0, [A, B, C, D])
    letter = signed(town, 0, (A, B, C, D), [A, B, C, D])
    first = tell(town, A, letter).sends
    assert not [n for n in town.disks[A].kept if n == "shares-0-0"]
    town.restart(A)
    again = tell(town, A, letter)
    assert again.sends == first and not again.writes


@pytest.mark.parametrize("signers", [[], [A, B, C], [B, C, D]])
def test_a_set_with_one_signature_too_few_is_not_opened(signers):
    town = ready_town()
    answered(town, 0, [A, B, C, D])
    with pytest.raises(TacitaError, match="signed by . agents of the roster, 4 are"):
        tell(town, A, signed(town, 0, (A, B, C, D), signers))


def test_signatures_that_are_forged_or_for_something_else_do_not_count():
    town = ready_town(6, least=4, colluding=0)
    town.silent = {"agent 005"}
    town.set_up()
    roster = town.coordinator.roster
    assert roster.needed == 3 and len(roster.members) == 5
    answered(town, 0, [A, B, C, D])
    right = signed(town, 0, (A, B, C, D), [A, B, C])
    other_set = signed(town, 0, (A, B, C, E), [C]).signatures
    other_exchange = signed(town, 1, (A, B, C, D), [C]).signatures
    outsider = signed(town, 0, (A, B, C, D), [A, B, "agent 005"])
    for wrong in (other_set, other_exchange, (bytes(64),)):
        with pytest.raises(TacitaError, match="signed by 2 agents"):
            bad = right._replace(signatures=(*right.signatures[:2], *wrong))
            tell(town, D, bad)
    with pytest.raises(TacitaError, match="signed by 2 agents"):
        tell(town, D, outsider)
    assert tell(town, D, right).sends


def test_a_sum_of_fewer_letters_than_agreed_is_not_opened():
    town = ready_town(5, least=4, colluding=0)
    answered(town, 0, [A, B, C])
    few = (A, B, C)
    with pytest.raises(TacitaError, match="4 at least"):
        tell(town, A, Alive(0, town.coordinator.roster.digest, few))
    with pytest.raises(TacitaError, match="4 at least"):
        tell(town, A, signed(town, 0, few, [A, B, C]))


def test_a_set_that_names_an_agent_which_has_not_answered_is_refused_by_it():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="has not answered"):
        tell(town, A, Alive(0, digest, (A, B, C, D)))
    with pytest.raises(TacitaError, match="has not answered"):
        tell(town, A, Open(0, digest, (A, B, C, D, E), (), ()))


def test_a_set_with_strangers_or_of_another_roster_is_refused():
    town = ready_town(6, least=4, colluding=1)
    town.silent = {"agent 005"}
    town.set_up()
    answered(town, 0, [A, B, C, D])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="not in the roster"):
        tell(town, A, Alive(0, digest, (A, B, C, "agent 005")))
    with pytest.raises(TacitaError, match="another roster"):
        tell(town, A, Alive(0, bytes(32), (A, B, C, D)))


@pytest.mark.parametrize("how", ["signed", "opened"])
def test_who_signed_or_opened_without_answering_stays_silent(how):
    """Its key may be public: only the self mask would hide its letter."""
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    chosen = (B, C, D, E)
    if how == "signed":
        tell(town, A, Alive(0, town.coordinator.roster.digest, chosen))
    else:
        tell(town, A, signed(town, 0, chosen, [B, C, D, E]))
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].asked(0, question_of(0))


def test_a_letter_that_is_being_made_when_its_set_is_signed_is_not_sent():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    wanted = town.agents[A].asked(0, question_of(0))
    tell(town, A, Alive(0, town.coordinator.roster.digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].answer(wanted, letter_of(A, wanted, town.terms))


def test_what_is_over_stays_over():
    town = ready_town()
    answered(town, 1, [A, B, C, D, E])
    digest = town.coordinator.roster.digest
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        town.agents[A].asked(0, question_of(0))
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        tell(town, A, Alive(0, digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="exchange 0 is over"):
        tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    assert not any(n.startswith("shares-0-0") for n in town.disks[A].kept)


def test_a_late_letter_stays_hidden_though_its_key_was_opened():
    """E answers, but is not in the set: everybody opens its key, nobody its mask."""
    town = ready_town()
    answers = answered(town, 0, [A, B, C, D, E])
    chosen = (A, B, C, D)
    opened = {}
    for name in (A, B, C, D, E):
        step = tell(town, name, signed(town, 0, chosen, [A, B, C, D]))
        (send,) = step.sends
        opened[name] = letters.decode("opening", send.content, town.terms).opened
    points = [1, 2, 3, 4]
    key = join(points, [number(opened[n][4]) for n in (A, B, C, D)])
    roster = town.coordinator.roster
    assert masks.public_key(key) == roster.public(E, 0)
    # Everything that the key opens is taken away; the self mask is left.
    (context,) = town.contexts[0]
    rest = answers[E].copy()
    own = {n: roster.public(n, 0) for n in chosen}
    taken = np.zeros_like(rest)
    masks.add_pair_masks(taken, E, masks.shared(key, own), context)
    rest -= taken
    letter = town.letter(E, Wanted(0, context, b""), town.terms)
    assert not np.any(rest == letter)


def test_agents_that_were_asked_different_things_cannot_be_summed():
    town = ready_town(4, least=4, colluding=0)
    town.act(HUB, lambda: town.coordinator.ask(0, question_of(0)))
    for name in town.terms.names:
        other = question_of(0 if name != B else 3)
        town.post.append((HUB, Send(name, "question", 0, other)))
    town.deliver()
    outcome = town.outcomes[0]
    assert isinstance(outcome, Sum)
    contexts = sorted(town.contexts[0])
    assert len(contexts) == 2
    made = [
        town.letter(n, Wanted(0, c, b""), town.terms)
        for n in town.terms.names
        for c in contexts
    ]
    # No sum of some of the letters, whichever they are, comes out in any entry.
    for bits in range(2 ** len(made)):
        some = [m for k, m in enumerate(made) if bits >> k & 1]
        plain = np.sum(some, axis=0, dtype=np.uint32) if some else 0
        assert not np.any(outcome.total == plain)


# Rosters.


def entries_of(town: Town, attempt: int, start: int, names) -> Entries:
    """What a coordinator can get out of agents for an attempt."""
    bodies, signatures = [], []
    for name in names:
        dealer = Dealer(town.terms, name, hashlib.sha256(name.encode()).digest())
        body = dealer.body(attempt, start)
        message = keys_message(town.terms, attempt, start, body)
        bodies.append(body)
        signatures.append(signing_key(name).sign(message))
    return Entries(attempt, start, tuple(names), tuple(bodies), tuple(signatures))


def resigned(town: Town, entries: Entries, name: str, body: bytes) -> Entries:
    """The same roster, but one agent colludes and signs another body."""
    place = entries.members.index(name)
    message = keys_message(town.terms, entries.attempt, entries.start, body)
    signature = signing_key(name).sign(message)
    bodies, signatures = list(entries.bodies), list(entries.signatures)
    bodies[place], signatures[place] = body, signature
    return entries._replace(bodies=tuple(bodies), signatures=tuple(signatures))


def new_town(agents: int = 5, **settings) -> Town:
    return Town(terms_of(agents, **{"least": 4, "colluding": 1} | settings))


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


# Shares.


def test_nothing_is_answered_signed_or_opened_before_all_shares_are_there():
    town = new_town()
    town.twist = lambda sender, send: (
        None if (sender, send.to, send.kind) == (B, A, "shares") else send
    )
    town.hub_does(lambda: town.coordinator.begin(0))
    roster = town.coordinator.roster
    assert town.agents[A].awaited() == (B,) and not town.coordinator.serves(0)
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        town.agents[A].asked(0, question_of(0))
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        tell(town, A, Alive(0, roster.digest, (B, C, D, E)))
    with pytest.raises(TacitaError, match="not ready: shares are missing"):
        tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    with pytest.raises(TacitaError, match="no roster is ready"):
        town.coordinator.ask(0, question_of(0))


def test_shares_of_another_roster_or_window_do_not_count():
    town = new_town(window=2)
    mine = entries_of(town, 0, 0, [A, B, C, D])
    other = entries_of(town, 0, 0, [A, B, C, D, E])
    tell(town, A, mine)
    for name in (B, C):
        for send in tell(town, name, mine).sends:
            if send.to == A:
                town.hand_over(name, send)
    for send in tell(town, D, other).sends:
        if send.to == A:
            with pytest.raises(TacitaError, match="not this agent's"):
                town.agents[A].heard(D, "shares", send.content)
    assert town.agents[A].awaited() == (D,)
    # Shares of an older window, sent again.
    newer = entries_of(town, 1, 2, [A, B, C, D])
    old = [s for s in tell(town, B, mine).sends if s.to == A]
    tell(town, A, newer)
    assert town.agents[A].awaited() == (B, C, D)
    for send in old:
        town.hand_over(B, send)
    assert town.agents[A].awaited() == (B, C, D)
    assert not any(n.startswith("shares-1") for n in town.disks[A].kept)


def test_two_rosters_of_one_attempt_cannot_be_mixed():
    """Three agents, none colludes, least = 2: the roster of two is opened whole.

    A and B are told of each other alone, C of everybody. If A and B answered under
    theirs, and C gave its shares for another set, one letter could be read.
    """
    town = Town(terms_of(3, least=2, colluding=0))
    small = entries_of(town, 0, 0, [A, B])
    whole = entries_of(town, 0, 0, [A, B, C])
    for name, told in ((A, small), (B, whole), (C, whole)):
        for send in tell(town, name, told).sends:
            town.post.append((name, send))
    town.deliver()
    for name in (A, B, C):
        with pytest.raises(TacitaError, match="not ready"):
            town.agents[name].asked(0, question_of(0))


def test_wrong_shares_of_a_holder_are_found_and_done_without():
    town = ready_town(7, least=5, colluding=1)
    seen = []

    def lie(sender, send):
        if (sender, send.kind) != (A, "opening"):
            return send
        seen.append(send)
        opening = letters.decode("opening", send.content, town.terms)
        false = tuple(bytes(31) + b"\1" for _ in opening.opened)
        content = letters.encode(opening._replace(opened=false), town.terms)
        return send._replace(content=content)

    town.twist = lie
    for exchange, silent in ((0, set()), (1, {"agent 006"})):
        town.silent = silent
        outcome = town.check_sum(town.run(exchange))
        assert outcome.false_holders == (A,)
    assert seen


@pytest.mark.parametrize("missing", [False, True])
def test_a_dealer_of_wrong_shares_is_named_and_left_out(missing):
    """Its self mask cannot be opened, or, where it is missing, its key."""
    town = Town(terms_of(6, least=4, colluding=1))

    def lie(sender, send):
        if (sender, send.kind) != (B, "shares"):
            return send
        shares = letters.decode("shares", send.content, town.terms)
        wrong = hashlib.sha512(send.to.encode()).digest() * (len(shares.dealt) // 64)
        content = letters.encode(shares._replace(dealt=wrong), town.terms)
        return send._replace(content=content)

    town.twist = lie
    town.set_up()
    if missing:
        town.twist = lambda sender, send: (
            None if (sender, send.kind) == (B, "answer") else send
        )
    outcome = town.run(0)
    assert isinstance(outcome, Void) and outcome.liars == (B,)
    assert town.coordinator.liars == (B,)
    town.twist = lambda sender, send: send
    town.restart(HUB)
    town.set_up(1)
    assert B not in town.coordinator.roster.members
    town.check_sum(town.run(1))


@pytest.mark.parametrize("agents, colluding", [(5, 1), (7, 1), (8, 2), (6, 0)])
def test_colluding_holders_who_give_both_shares_read_nobody(agents, colluding):
    """As many as must sign a set without the victim; the others open everybody's."""
    least = max(agents - 1, colluding + 2)
    town = ready_town(agents, least=least, colluding=colluding)
    roster, names = town.coordinator.roster, town.terms.names
    honest, colluders = names[: agents - colluding], names[agents - colluding :]
    victim = honest[-1]
    answered(town, 0, honest)
    chosen = tuple(n for n in names if n != victim)
    signers = sorted((*colluders, *honest)[: roster.needed])
    keys = {names.index(n): _held(town, n, victim, 0) for n in colluders}
    selfs = {names.index(n): _held(town, n, victim, 32) for n in colluders}
    for name in honest:
        if name in signers:
            step = tell(town, name, signed(town, 0, chosen, signers))
        else:
            step = tell(town, name, Open(0, roster.digest, names, (), ()))
        opening = letters.decode("opening", step.sends[0].content, town.terms)
        share = number(opening.opened[names.index(victim)])
        (keys if name in signers else selfs)[names.index(name)] = share
    secrets = [_join(found, roster.needed) for found in (keys, selfs)]
    opened = (
        secrets[0] and masks.public_key(secrets[0]) == roster.public(victim, 0),
        secrets[1] and masks.commitment(secrets[1]) == roster.commitment(victim, 0),
    )
    assert opened[0] and not opened[1]


def _held(town: Town, holder: str, dealer: str, offset: int) -> int:
    at = town.terms.names.index(dealer) * 64 + offset
    return number(town.disks[holder].kept["shares-0-0"][at : at + 32])


def _join(shares: dict[int, int], needed: int) -> bytes | None:
    some = dict(list(shares.items())[:needed])
    return join([place + 1 for place in some], list(some.values()))


# Old backups.


def test_an_old_checkpoint_cannot_answer_another_question():
    town = ready_town()
    old = dict(town.disks[A].kept)
    answered(town, 0, [A])
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another answer 0"):
        town.agents[A].asked(0, question_of(1))
    assert answered(town, 0, [A])  # the same question gets the same letter


def test_an_old_checkpoint_cannot_sign_or_open_another_set():
    town = ready_town()
    answered(town, 0, [A, B, C, D, E])
    old = dict(town.disks[A].kept)
    first = tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D])).sends
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, Alive(0, town.coordinator.roster.digest, (A, B, C, E)))
    with pytest.raises(TacitaError, match="another set 0"):
        tell(town, A, signed(town, 0, (A, B, C, E), [A, B, C, E]))
    assert tell(town, A, signed(town, 0, (A, B, C, D), [A, B, C, D])).sends == first


def test_an_old_checkpoint_cannot_answer_once_its_key_was_opened():
    town = ready_town()
    answered(town, 0, [B, C, D, E])
    old = dict(town.disks[A].kept)
    tell(town, A, signed(town, 0, (B, C, D, E), [B, C, D, E]))
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="stays silent"):
        town.agents[A].asked(0, question_of(0))


def test_an_old_checkpoint_cannot_accept_another_roster_nor_use_an_older_one():
    town = ready_town()
    old = dict(town.disks[A].kept)
    newer = entries_of(town, 1, 2, [A, B, C, D])
    tell(town, A, newer)
    town.disks[A].kept = old
    town.restart(A)
    with pytest.raises(TacitaError, match="another roster 1"):
        tell(town, A, entries_of(town, 1, 2, [A, B, C, D, E]))
    with pytest.raises(TacitaError, match="no roster is here"):
        town.agents[A].asked(2, question_of(2))
    assert tell(town, A, newer).sends  # the same one is dealt again


def test_the_ledger_itself_refuses_a_step_that_was_not_released():
    """A machine that was not told of its own writes is stopped by the ledger."""
    town = ready_town()
    agent = town.agents[A]
    wanted = [agent.asked(0, q) for q in (question_of(0), question_of(1))]
    steps = [agent.answer(w, letter_of(A, w, town.terms)) for w in wanted]
    for write in steps[0].writes:
        town.disks[A].write(write)
    with pytest.raises(TacitaError, match="the ledger has another answer"):
        town.disks[A].write(steps[1].writes[0])


# Letters that are not what they should be.


def test_letters_of_the_wrong_words_are_refused():
    town = ready_town()
    wanted = town.agents[A].asked(0, question_of(0))
    for wrong in (np.zeros(7, np.int64), np.zeros(7), np.zeros(6, np.uint32)):
        with pytest.raises(TacitaError, match="7 words of 32 bits"):
            town.agents[A].answer(wanted, wrong)
        town.coordinator.ask(0, question_of(0))
        with pytest.raises(TacitaError, match="7 words of 32 bits"):
            town.coordinator.answer(A, 0, wrong)


def test_the_coordinator_counts_nobody_twice_and_nobody_late():
    town = ready_town()
    answers = answered(town, 0, [A, B, C, D, E])
    hub = town.coordinator
    hub.ask(0, question_of(0))
    for name in (A, A, B, C, D):
        hub.release(hub.answer(name, 0, answers[name]))
    assert hub.awaited == (E,)
    fixed = hub.time_up()
    hub.release(fixed)
    assert {s.kind for s in fixed.sends} == {"alive"}
    with pytest.raises(TacitaError, match="is late"):
        hub.answer(E, 0, answers[E])
    with pytest.raises(TacitaError, match="not under way"):
        hub.answer(E, 1, answers[E])
    with pytest.raises(TacitaError, match="not in the roster"):
        hub.answer("stranger", 0, answers[E])


def test_signatures_under_another_set_are_not_taken_for_agreement():
    town = ready_town()
    town.twist = lambda sender, send: None if send.kind in ("agreed", "open") else send
    town.silent = {E}
    town.ask(0)
    town.hub_does(town.coordinator.time_up)
    assert town.coordinator.stage == "agreed"
    digest = town.coordinator.roster.digest
    wrong = signed(town, 0, (A, B, C, E), [A]).signatures[0]
    content = letters.encode(letters.Agreed(0, digest, wrong), town.terms)
    with pytest.raises(TacitaError, match="has not signed the set"):
        town.coordinator.heard(A, "agreed", content)


def test_the_terms_are_those_of_the_description():
    """A coordinator cannot lower `least`: agents read it from what they signed for."""
    town = ready_town()
    low = replace(town.terms, least=3, colluding=0)
    answered(town, 0, [A, B, C])
    letter = Alive(0, town.coordinator.roster.digest, (A, B, C))
    with pytest.raises(TacitaError, match="4 at least"):
        content = letters.encode(letter, low)
        town.agents[A].heard(HUB, "alive", content)
