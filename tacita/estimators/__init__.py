"""Federated learning as scikit-learn has it: fit, predict, score; groups are parties.

>>> import numpy as np
>>> from tacita.estimators import FederatedClassifier
>>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
>>> fitted = FederatedClassifier(rounds=20).fit(X, list("nnyy"), groups=[0, 1, 0, 1])
>>> fitted.predict([[3.0]]).tolist(), fitted.parties_.tolist()
(['y'], [0, 1])
"""

from tacita.estimators.federated import FederatedClassifier, FederatedRegressor
from tacita.estimators.network import NetworkClassifier, NetworkRegressor

__all__ = [
    "FederatedClassifier",
    "FederatedRegressor",
    "NetworkClassifier",
    "NetworkRegressor",
]
