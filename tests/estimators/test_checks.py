"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import tacita

#: Few rounds: what is checked is the behaviour, not the optimum.
ESTIMATORS = [
    tacita.FederatedClassifier(rounds=30),
    tacita.FederatedRegressor(rounds=30),
    tacita.NetworkClassifier(rounds=30),
    tacita.NetworkRegressor(rounds=30),
]
QUICK = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_do_not_raise_errors_in_init_or_set_params",
)


@pytest.mark.parametrize("name", QUICK)
def test_constructors_are_as_scikit_learn_wants_them(name):
    check = getattr(estimator_checks, name)
    for estimator in ESTIMATORS:
        check(type(estimator).__name__, estimator)


@pytest.mark.long
@pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
