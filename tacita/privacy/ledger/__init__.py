"""What a party has told so far: written before a letter leaves, never under-counted."""

from tacita.privacy.ledger.backup import back_up, restore
from tacita.privacy.ledger.charges import Ledger
from tacita.privacy.ledger.rows import BrokenLedger, BudgetExceeded

__all__ = ["BrokenLedger", "BudgetExceeded", "Ledger", "back_up", "restore"]
