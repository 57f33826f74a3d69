"""From your own rows to a saved run: three hospitals, one table, one model.

python examples/own_rows.py
"""

import tempfile

import numpy as np
import pandas as pd

import tacita

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(300, 3)), columns=["age", "pressure", "pulse"])
table["hospital"] = rng.choice(["north", "south", "east"], 300, p=[0.6, 0.3, 0.1])
table["ill"] = (table.age - 0.5 * table.pulse + 0.5 * rng.normal(size=300)) > 0

problem = tacita.from_arrays(
    table[["age", "pressure", "pulse"]],
    table.ill,
    table.hospital,
    model="logistic",
    l2=0.01,
    intercept=True,
)
print(problem, dict(zip(problem.ids, problem.counts.tolist(), strict=True)))

run = tacita.simulate(
    problem, tacita.FedAvg(local_steps=3), rounds=100, record=("loss", "accuracy")
)
print(run)

with tempfile.TemporaryDirectory() as folder:
    print("saved and read back:", tacita.load_run(run.save(f"{folder}/first")))
