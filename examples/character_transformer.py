"""A small transformer in Flax learns Shakespeare's next character, role by role.

python examples/character_transformer.py

Every speaking role is an agent that keeps its lines. The network is the user's own: one
block of attention over the last characters, written in Flax NNX, and handed to Tacita
by `tacita.problem.from_flax`. The text is fetched by `tacita data fetch shakespeare`.
"""

import sys

import numpy as np

import tacita
from tacita import data

WINDOW, WIDTH, HEADS, ROLES = 16, 32, 4, 8


def transformer(characters: int):
    """Predict the character after a window from attention over the window."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    class Transformer(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.letters = nnx.Embed(characters, WIDTH, rngs=rngs)
            self.places = nnx.Param(0.02 * jax.random.normal(rngs(), (WINDOW, WIDTH)))
            self.before = nnx.LayerNorm(WIDTH, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(
                HEADS, WIDTH, decode=False, rngs=rngs
            )
            self.between = nnx.LayerNorm(WIDTH, rngs=rngs)
            self.wide = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
            self.narrow = nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)
            self.scores = nnx.Linear(WIDTH, characters, rngs=rngs)

        def __call__(self, codes: jax.Array) -> jax.Array:
            x = self.letters(codes) + self.places[...]
            # Only the last character is followed by the one to predict: it alone asks.
            last = x[:, -1:] + self.attention(self.before(x[:, -1:]), self.before(x))
            last = last + self.narrow(nnx.relu(self.wide(self.between(last))))
            return self.scores(jnp.squeeze(last, axis=1))

    return Transformer(nnx.Rngs(0))


def main() -> None:
    """Train for a few rounds, and say what it learnt."""
    try:
        text = data.load("shakespeare", window=WINDOW, stride=5, test_share=0.1)
    except (tacita.TacitaError, OSError) as error:
        print(f"skipped, there is no text: {error}")
        return
    roles = np.argsort(-np.bincount(text.agent))[:ROLES]
    mine, theirs = np.isin(text.agent, roles), np.isin(text.test_agent, roles)
    names = np.asarray(text.agent_names)[text.agent]
    characters = len(text.classes)
    model = tacita.problem.from_flax(
        transformer(characters), classes=characters, whole=True
    )
    problem = tacita.from_arrays(
        text.x[mine],
        text.y[mine],
        names[mine],
        model=model,
        classes=text.classes,
        coded=True,
        test=(text.test_x[theirs], text.test_y[theirs]),
        name="shakespeare",
    )
    batch = tacita.Minibatch(size=32)
    algorithm = tacita.FedAvg(step_size=0.2, local_steps=20, oracle=batch)
    told = {"record": ("test_loss", "test_accuracy"), "record_every": 5}
    run = tacita.simulate(problem, algorithm, rounds=20, seed=0, **told)
    usual = np.bincount(text.y[mine]).argmax()
    share = np.mean(text.test_y[theirs] == usual)
    print(f"{problem.n_agents} roles, {problem.dim} parameters")
    print(f"test accuracy: {run.metrics['test_accuracy'][-1]:.2f}")
    print(f"always {text.classes[usual]!r}: {share:.2f}")


if __name__ == "__main__":
    sys.exit(main())
