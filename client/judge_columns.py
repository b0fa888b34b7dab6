"""What judges took and on which scales they rated, as columns beside a run's scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = Mapping[str, Any]

BILL = ("asks", "second_asks", "tries", "tokens_in", "tokens_out", "cost", "cached")


@dataclass(slots=True)
class Tally:
    """One judge over all trials; arrays of shape (trials,).

    Attributes:
        bill: What asking took, by name; 0 where nothing was asked, NaN where it is not known.
        low: Lower end of the scale of a rating; NaN without one.
        high: Upper end.
        put: Whether a reply was to be put to the judge; what has no clip, no transcript or no
            reference was not.
        models: Names of the model, as it was asked for.
        served: Names of the model, as the service told.
        prompts: Rubric -> beginnings of the prompt's hash.
        currencies: Of the costs.
        problems: A service's words about why it could not be asked -> how often.
    """

    bill: dict[str, Floats]
    low: Floats
    high: Floats
    put: NDArray[np.bool_]
    models: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    prompts: dict[str, set[str]] = field(default_factory=dict)
    currencies: set[str] = field(default_factory=set)

    @classmethod
    def empty(cls, count: int) -> Tally:
        """Return a tally of a judge that nobody asked."""
        bill = {name: np.zeros(count) for name in BILL}
        return cls(bill, np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, np.bool_))

    def take(self, index: int, detail: Row) -> None:
        """Take what the newest row of one trial says."""
        if not isinstance(detail.get("orders"), list):
            if "prompt" not in detail:  # nothing was asked; a row with a prompt goes beside one
                self._forget(index)
            return
        self.put[index] = True
        for name in BILL:
            value = detail.get(name)
            known = isinstance(value, int | float) and not isinstance(value, bool)
            self.bill[name][index] = float(value) if known and value is not None else math.nan
        match detail.get("scale"):
            case [int() | float() as low, int() | float() as high]:
                self.low[index], self.high[index] = low, high
            case _:
                self.low[index] = self.high[index] = math.nan
        self._name(detail)

    def _forget(self, index: int) -> None:
        for column in self.bill.values():
            column[index] = 0.0
        self.put[index] = False
        self.low[index] = self.high[index] = math.nan

    def _name(self, detail: Row) -> None:
        rubric, prompt = detail.get("rubric"), detail.get("prompt")
        if isinstance(rubric, str) and isinstance(prompt, str):
            self.prompts.setdefault(rubric, set()).add(prompt)
        for names, key in ((self.models, "model"), (self.currencies, "currency")):
            if isinstance(detail.get(key), str):
                names.add(detail[key])
        for order in detail["orders"]:
            for said in order.get("replies") or () if isinstance(order, Mapping) else ():
                if isinstance(said, Mapping) and isinstance(said.get("model"), str):
                    self.served.add(said["model"])

    def scale(self, rows: NDArray[np.int64]) -> tuple[float, float] | None:
        """Return the one scale of the ratings in a selection; None without any or with several."""
        rated = rows[np.isfinite(self.low[rows])]
        found = {*zip(self.low[rated].tolist(), self.high[rated].tolist(), strict=True)}
        return found.pop() if len(found) == 1 else None
