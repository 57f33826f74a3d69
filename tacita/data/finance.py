"""Tables with several owners: bank-marketing and credit-default."""

from __future__ import annotations

import numpy as np

from tacita.check import one_of, refuse
from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.tabular import assemble, read_csv, text_levels
from tacita.data.test_rows import hold_out_last, hold_out_rows

_BANK, _CREDIT = ENTRIES["bank-marketing"], ENTRIES["credit-default"]
_NEVER_CALLED = 999


def load_bank_marketing(
    *,
    duration: bool = False,
    scale: str | None = "standard",
    test_by: str = "rows",
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Bank marketing: 41 188 calls, class 1 for a term deposit, three parties.

    Categories are one-hot, "unknown" being a level of its own. `pdays` is 999 for
    people never called before: it becomes 0 next to a column "contacted before". The
    12 duplicate rows stay, as nothing says they are the same client; rows of the
    parties are aligned by their order.

    Args:
        duration: Keep the length of the call, which is known only when the outcome is
            known too: fine for a benchmark, not for a forecast.
        scale: "standard", "minmax", "unit" or None.
        test_by: "rows" (at random) or "time" (the last calls, in a different economy).
        test_share: Share kept for testing.
        seed: Of the draw of test rows.
    """
    one_of(("rows", "time"), test_by=test_by)
    table = read_csv(_BANK.files[0], sep=";", keep_default_na=False)
    deposit = (table.pop("y") == "yes").to_numpy()
    called = (table["pdays"] != _NEVER_CALLED).to_numpy()
    table["pdays"] = table["pdays"].where(called, 0)
    table.insert(table.columns.get_loc("pdays"), "contacted before", called)
    if not duration:
        table = table.drop(columns="duration")
    if test_by == "time":
        test = hold_out_last(np.arange(len(table)), test_share)
    else:
        test = hold_out_rows(deposit, test_share, seed)
    notes = ["pdays 999 (never called) replaced by 0 and a column 'contacted before'"]
    if not duration:
        notes.append("duration left out: it is known only after the call")
    return assemble(
        name="bank-marketing",
        features=table,
        levels=text_levels(table),
        y=deposit,
        task="classification",
        test=test,
        scale=scale,
        target_name="term deposit",
        classes=_BANK.classes,
        parties=_BANK.parties,
        notes=notes,
    )


def load_credit_default(
    *,
    parties: int = 2,
    scale: str | None = "standard",
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Credit card default: 30 000 clients, class 1 for default, two or three parties.

    `SEX`, `EDUCATION` and `MARRIAGE` are one-hot, undocumented codes being levels of
    their own. Rows of the parties are aligned by their order, which is that of `ID`.

    Args:
        parties: 2 ("profile", "payments") or 3 ("profile", "status", "amounts").
        scale: "standard", "minmax", "unit" or None.
        test_share: Share kept for testing, of either class.
        seed: Of that draw.
    """
    if parties not in (2, 3):
        refuse(f"expected parties 2 or 3, got parties={parties!r}")
    owned = dict(_CREDIT.parties)
    if parties == 2:
        owned["payments"] = owned.pop("status") + owned.pop("amounts")
    table = read_csv(_CREDIT.files[0]).drop(columns="ID")
    default = table.pop("default.payment.next.month").to_numpy()
    levels = {
        column: sorted(table[column].unique())
        for column in ("SEX", "EDUCATION", "MARRIAGE")
    }
    return assemble(
        name="credit-default",
        features=table,
        levels=levels,
        y=default,
        task="classification",
        test=hold_out_rows(default, test_share, seed),
        scale=scale,
        target_name="default next month",
        classes=_CREDIT.classes,
        parties=owned,
    )
