"""Privacy: mechanisms, accounting, guarantees per observer, ledger, audit.

An epsilon is only true for an observer. Everything here that carries one is a
`Guarantee`, which names its observer, unit, neighbouring relation, theorem and
assumptions.
"""

from tacita.privacy import features
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
from tacita.privacy.accounting.mechanisms import (
    gaussian,
    gaussian_guarantee,
    laplace,
    laplace_guarantee,
    randomised_response,
    randomised_response_guarantee,
)
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.adaptive import AdaptiveClipping
from tacita.privacy.budgets import Budgeted, within_budgets
from tacita.privacy.clipped import Clipped, Promise, promise_of
from tacita.privacy.ledger import BrokenLedger, BudgetExceeded, Ledger
from tacita.privacy.letters import Letters, Question, guarantee, letters_of
from tacita.privacy.letters.noisy_training import fed_plt, gradient_noise
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.noisy import Noisy
from tacita.privacy.private import private, rounds_within
from tacita.privacy.promised import promised, require_kept
from tacita.privacy.scope import Observer, Relation, Scope, Unit
from tacita.privacy.statement import forecast, report
from tacita.trace import PrivacyReport, PrivacyRow

__all__ = [
    "AdaptiveClipping",
    "Assumption",
    "BrokenLedger",
    "BudgetExceeded",
    "Budgeted",
    "Clipped",
    "Guarantee",
    "Ledger",
    "Letters",
    "NoiseSchedule",
    "Noisy",
    "Observer",
    "PaperClaim",
    "Poisson",
    "PoissonReplaced",
    "PrivacyReport",
    "PrivacyRow",
    "Promise",
    "Question",
    "Relation",
    "Scope",
    "Unit",
    "WithReplacement",
    "WithoutReplacement",
    "account",
    "affordable_rounds",
    "calibrate_noise",
    "classical_gaussian_sigma",
    "epsilon_for",
    "features",
    "fed_plt",
    "forecast",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_guarantee",
    "gaussian_sigma",
    "gradient_noise",
    "guarantee",
    "letters_of",
    "laplace",
    "laplace_guarantee",
    "noise_for",
    "private",
    "promise_of",
    "promised",
    "randomised_response",
    "randomised_response_guarantee",
    "report",
    "require_kept",
    "rounds_for",
    "rounds_within",
    "within_budgets",
]
