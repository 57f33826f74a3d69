"""Three parties with different columns of the same calls train one model.

python examples/variant_vertical.py [PICTURE]

The client register, the call centre and the national statistics each keep their columns
of the bank-marketing table; only the call centre knows who took a deposit.
"""

import os
import sys
from pathlib import Path

import numpy as np

import tacita
from tacita import data
from tacita.theme import LIGHT, dress, new_figure, png

if not os.environ.get("TACITA_DATA"):
    print("skipped: TACITA_DATA names no folder with the data sets")
    sys.exit()
picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/vertical.png")
bank = data.load("bank-marketing", test_share=0.2)
tables = {name: bank.party(name) for name in bank.parties}
holder = "call centre"
tables[holder] = np.c_[tables[holder], np.ones(len(bank))]  # the intercept

algorithm = tacita.VerticalNewton(l2=1e-3)
run = tacita.train_vertical(tables, bank.y, holder, algorithm=algorithm)
print(f"{run.exchanges} exchanges, {len(run.objective) - 1} Newton steps")
for (sender, receiver, content), count in sorted(run.sent.items()):
    print(f"  {sender:>20} -> {receiver:<20} {content:16} {count:>12,} numbers")

joined = tacita.from_arrays(
    np.concatenate(list(tables.values()), axis=1),
    bank.y,
    np.zeros(len(bank)),
    model="logistic",
    l2=1e-3,
)
central = joined.solve()
found = np.concatenate(list(run.params.values()))
print(f"largest difference from the joined table: {np.abs(found - central).max():.1e}")


def area(scores):
    """Area under the ROC curve on the test calls: the chance to rank a pair rightly."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    yes = bank.test_y == 1
    below = ranks[yes].sum() - yes.sum() * (yes.sum() + 1) / 2
    return below / (yes.sum() * (~yes).sum())


test = {name: bank.test_x[:, list(bank.parties[name])] for name in bank.parties}
test[holder] = np.c_[test[holder], np.ones(len(bank.test_y))]
areas = {"all three": area(run.scores(test))}
for name in tables:  # what a party can do alone, were it told the labels
    columns = {name: np.c_[tables[name], np.ones(len(bank))]}
    alone = tacita.train_vertical(columns, bank.y, name, algorithm=algorithm)
    areas[name] = area(
        alone.scores({name: np.c_[test[name], np.ones(len(test[name]))]})
    )
print({name: round(value, 3) for name, value in areas.items()})

figure = new_figure(LIGHT, 8.4, 3.2)
left, right = figure.subplots(1, 2)
dress(left, LIGHT)
left.semilogy(run.gradient_norm, "o-", color=LIGHT.series[0])
left.set_xlabel("Newton step")
left.set_ylabel("norm of the gradient")
dress(right, LIGHT)
right.barh(list(areas), list(areas.values()), color=LIGHT.series[1], height=0.6)
right.set_xlim(0.5, 0.85)
right.invert_yaxis()
right.set_xlabel("area under the ROC curve, test calls")
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)
