"""How an agent's letter lay among the others: told in a report, never acted upon.

The numbers are for people to look at. Nobody is left out by them: honest agents with
unusual data look like liars, and careful liars look honest.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import squared_distances
from tacita.aggregation.krum import scores
from tacita.aggregation.robust_rule import RobustRule, Vectors, middle

#: What is told of every letter.
SIGNS = ("distance", "cosine", "length", "rank", "used")


def look(given: Vectors, joint: Array, rule: object) -> Array:
    """(signs, n), not a number where a letter is not heard.

    Distance to the result over the median distance; cosine with it and length, both
    seen from the centre; the place by Krum's score, 0 for the letter in the nearest
    company; and how much of it the rule used.
    """
    away = jnp.linalg.norm(given.letters - joint, axis=1)
    apart = jnp.where(given.active, away, jnp.inf)
    usual = middle(jnp.sort(apart), given.heard)
    updates, step = given.letters - given.centre, joint - given.centre
    lengths = jnp.linalg.norm(updates, axis=1)
    whole = lengths * jnp.linalg.norm(step)
    cosine = updates @ step / jnp.where(whole > 0, whole, 1)
    company = scores(squared_distances(given), given.active, (given.heard - 3) // 2)
    rank = jnp.argsort(jnp.argsort(company, stable=True), stable=True)
    used = rule.used(given) if isinstance(rule, RobustRule) else given.active
    told = (away / jnp.where(usual > 0, usual, 1), cosine, lengths, rank, used)
    table = jnp.stack([one.astype(jnp.float64) for one in told])
    return jnp.where(given.active, table, jnp.nan)
