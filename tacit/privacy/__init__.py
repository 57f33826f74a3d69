"""Privacy: mechanisms, accounting, guarantees per observer, ledger, audit.

An epsilon is only true for an observer. Everything here that carries one is a
`Guarantee`, which names its observer, unit, neighbouring relation, theorem and
assumptions.
"""

from tacit.privacy.account import account
from tacit.privacy.adaptive import AdaptiveClipping
from tacit.privacy.analytic_gaussian import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from tacit.privacy.audit import Audit, audit
from tacit.privacy.audit_statistics import (
    AuditResult,
    audit_outputs,
    epsilon_lower_bound,
)
from tacit.privacy.budgets import Budgeted, within_budgets
from tacit.privacy.calibrate import (
    affordable_rounds,
    calibrate_noise,
    epsilon_for,
    noise_for,
    rounds_for,
)
from tacit.privacy.canary import Canary
from tacit.privacy.clip import Clipped, Promise
from tacit.privacy.dp_norm import dp_norm, dp_norm_sigma
from tacit.privacy.edges import (
    allow_edges,
    as_everybody,
    charge_edges,
    edge_account,
    price_of_round,
)
from tacit.privacy.fed_plt import fed_plt
from tacit.privacy.fed_spd import fed_spd
from tacit.privacy.fed_spd_paper import fed_spd_as_printed
from tacit.privacy.guarantee import Assumption, Guarantee, PaperClaim
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger_rows import BrokenLedger, BudgetExceeded
from tacit.privacy.letters import Question, guarantee, noisy_gradients, with_noise
from tacit.privacy.mechanism import (
    gaussian,
    laplace,
    minimiser_sensitivity,
    noise_letters,
    perturb_output,
    randomised_response,
)
from tacit.privacy.mechanism_guarantee import (
    gaussian_guarantee,
    laplace_guarantee,
    randomised_response_guarantee,
)
from tacit.privacy.private import private, rounds_within
from tacit.privacy.report import forecast, report
from tacit.privacy.sampling import Poisson, WithoutReplacement, WithReplacement
from tacit.trace.privacy_report import PrivacyReport, PrivacyRow

__all__ = [
    "AdaptiveClipping",
    "Assumption",
    "Audit",
    "AuditResult",
    "BrokenLedger",
    "BudgetExceeded",
    "Budgeted",
    "Canary",
    "Clipped",
    "Guarantee",
    "Ledger",
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
    "audit",
    "audit_outputs",
    "calibrate_noise",
    "charge_edges",
    "classical_gaussian_sigma",
    "dp_norm",
    "dp_norm_sigma",
    "edge_account",
    "epsilon_for",
    "epsilon_lower_bound",
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
