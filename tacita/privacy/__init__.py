"""Privacy: mechanisms, accounting, guarantees per observer, ledger, audit.

An epsilon is only true for an observer. Everything here that carries one is a
`Guarantee`, which names its observer, unit, neighbouring relation, theorem and
assumptions.
"""

from tacita.privacy.accounting.calibrate import (
    affordable_rounds,
    calibrate_noise,
    epsilon_for,
    noise_for,
    rounds_for,
)
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.gaussian import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from tacita.privacy.accounting.guarantee import Assumption, Guarantee, PaperClaim
from tacita.privacy.accounting.mechanism_guarantee import (
    gaussian_guarantee,
    laplace_guarantee,
    randomised_response_guarantee,
)
from tacita.privacy.accounting.mechanisms import (
    gaussian,
    laplace,
    minimiser_sensitivity,
    noise_letters,
    perturb_output,
    randomised_response,
)
from tacita.privacy.accounting.subsampling import (
    Poisson,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.adaptive import AdaptiveClipping
from tacita.privacy.budgets import Budgeted, within_budgets
from tacita.privacy.clipped import Clipped, Promise
from tacita.privacy.ledger.edge_accounts import (
    allow_edges,
    as_everybody,
    charge_edges,
    edge_account,
    price_of_round,
)
from tacita.privacy.ledger.ledger import Ledger
from tacita.privacy.ledger.rows import BrokenLedger, BudgetExceeded
from tacita.privacy.letters import Question, guarantee, noisy_gradients, with_noise
from tacita.privacy.letters.fed_spd_as_printed import fed_spd_as_printed
from tacita.privacy.letters.noisy_training import fed_plt
from tacita.privacy.letters.primal_dual_steps import fed_spd
from tacita.privacy.letters.trajectory import dp_norm, dp_norm_sigma
from tacita.privacy.noisy import Noisy
from tacita.privacy.private import private, rounds_within
from tacita.privacy.statement import forecast, report
from tacita.trace.privacy_report import PrivacyReport, PrivacyRow

__all__ = [
    "AdaptiveClipping",
    "Assumption",
    "BrokenLedger",
    "BudgetExceeded",
    "Budgeted",
    "Clipped",
    "Guarantee",
    "Ledger",
    "Noisy",
    "PaperClaim",
    "Poisson",
    "PrivacyReport",
    "PrivacyRow",
    "Promise",
    "Question",
    "WithReplacement",
    "WithoutReplacement",
    "account",
    "affordable_rounds",
    "allow_edges",
    "as_everybody",
    "calibrate_noise",
    "charge_edges",
    "classical_gaussian_sigma",
    "dp_norm",
    "dp_norm_sigma",
    "edge_account",
    "epsilon_for",
    "fed_plt",
    "fed_spd",
    "fed_spd_as_printed",
    "forecast",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_guarantee",
    "gaussian_sigma",
    "guarantee",
    "laplace",
    "laplace_guarantee",
    "minimiser_sensitivity",
    "noise_for",
    "noise_letters",
    "noisy_gradients",
    "perturb_output",
    "price_of_round",
    "private",
    "randomised_response",
    "randomised_response_guarantee",
    "report",
    "rounds_for",
    "rounds_within",
    "with_noise",
    "within_budgets",
]
