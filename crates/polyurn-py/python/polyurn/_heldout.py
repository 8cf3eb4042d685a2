"""How well a fit predicts records that it has not seen."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from . import _core
from ._fits import Fit
from ._predictions import new_documents
from ._progress import Progress
from ._results import _Result, _shown
from ._samples import axis_nodes
from ._settings import request
from ._tables import Records, is_table
from ._warnings import warn_all


class Heldout(_Result):
    """The predictive probability of records that were held out.

    Of a new document every other token, in the order of the table, tells about its row, and the others are scored: no token is predicted
    from itself. A known document is scored by its row of the fit.

    Attributes
    ----------
    log_probability_per_token : float
        ln probability of a token on average, given its document where there are documents.
    std_error : float or None
        Its standard error, documents (or else tokens) being independent.
    perplexity : float
        exp of minus that.
    """

    @property
    def log_probability_per_token(self) -> float:
        return self["log_probability_per_token"]

    @property
    def std_error(self) -> float | None:
        return self["std_error"]

    @property
    def perplexity(self) -> float:
        return self["perplexity"]

    def to_pandas(self) -> Any:
        """A series of all numbers and words."""
        import pandas as pd

        return pd.Series({name: self[name] for name, value in self._found.items() if not isinstance(value, (list, dict))})

    def __repr__(self) -> str:
        shown = _shown(self.log_probability_per_token, self.std_error)
        return f"<Heldout: ln probability of a token {shown}, perplexity {self.perplexity:.6g}>"

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        rows = [
            ["ln probability of a token", _shown(self.log_probability_per_token, self.std_error)],
            ["perplexity", f"{self.perplexity:.6g}"],
            ["tokens scored", f"{self['tokens']:g}"],
            ["fit", self["method"]],
        ]
        return ["", "value"], rows, "held out"


def score_heldout(data: _core.Dataset, table: Any, settings: dict[str, Any], is_ours: bool, drops: bool, progress: bool | None) -> Heldout:
    """Fits, and scores records that were held out."""
    if not is_table(table):
        raise ValueError("heldout: expected a frame or another table of records, in which each row has a place; estimators score arrays")
    method = {"auto": "vb"}.get(settings["method"], settings["method"])
    if method not in ("vb", "smc"):
        raise ValueError(f'heldout: the fit is made by method "vb" (the default) or "smc", not {method!r}')
    start = time.perf_counter()
    with Progress(progress) as bar:
        core, summary, interrupted = _core.fit(data, request(**{**settings, "method": method}), is_ours, bar.watcher)
    fit = Fit(core, json.loads(summary))
    rows = Records(table)
    if rows.counts is not None and np.isnan(np.asarray(rows.counts, dtype=float)).any():
        raise ValueError("heldout: a count is unknown; leave the row out")
    found = _Scoring(fit, rows, drops, settings["threads"]).found()
    found |= {"method": method, "objective": fit._found["log_p_sequence"], "seed": settings["seed"]}
    found |= {"seconds": time.perf_counter() - start, "warnings": fit.warnings, "version": _core.__version__}
    result = Heldout(found)
    warn_all(result.warnings, interrupted)
    return result


class _Scoring:
    """Rows in the terms of a fit, and what is scored of them."""

    def __init__(self, fit: Fit, table: Records, drops: bool, threads: int) -> None:
        self.fit, self.n_rows, self.threads = fit, table.n_rows, threads
        self.given = list(fit._core.local_nodes)
        self.columns, groups, self.new_values, self.n_dropped = new_documents(fit, table, axis_nodes(fit._core), drops)
        self.counts = np.ones(table.n_rows) if table.counts is None else np.asarray(table.counts, dtype=float)
        self.group = np.full(table.n_rows, -1) if groups is None else groups[1]
        used, self.scored = self._halves()
        self.n_used = float(used.sum())
        self.groups = None if groups is None else (groups[0], groups[1], groups[2], used)

    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each row that tell about its new document, and tokens that are scored: they take turns."""
        n = self.counts
        before = np.zeros(len(n))
        for group in range(len(self.new_values)):
            own = self.group == group
            whole = np.where(n[own] == np.floor(n[own]), n[own], 0.0)
            before[own] = np.cumsum(whole) - whole
        turns = np.floor((before + n) / 2) - np.floor(before / 2)
        scored = np.where(self.group < 0, n, np.where(n == np.floor(n), turns, n / 2))
        return n - scored, scored

    def found(self) -> dict[str, Any]:
        fit = self.fit._core
        ln_p, ln_given, _, _ = _core.predict(fit, self.columns, self.groups, [], None, self.n_rows, self.threads)
        codes = dict(self.columns)
        is_shown = {name: column >= 0 for name, column in codes.items()}
        n_shown = np.sum([*is_shown.values()], axis=0)
        n_given = np.sum([is_shown[name] for name in self.given if name in codes] or [np.zeros(self.n_rows)], axis=0)
        # A token that shows nothing but where it is has nothing to be scored by.
        is_scored = (self.scored > 0) & (n_shown != n_given)
        n, ln = self.scored[is_scored], ln_given[is_scored]
        if n.sum() == 0:
            raise ValueError("heldout: there are no tokens to score")
        unit = np.full(self.n_rows, -1)
        if self.given and self.given[0] in codes:
            first = codes[self.given[0]]
            unit = np.where(self.group >= 0, first.max(initial=0) + 1 + self.group, first)
        unit = unit[is_scored]
        # Of tokens without a document nobody knows which belong together: each is one of its own.
        alone = unit < 0
        tokens, lns = np.bincount(unit[~alone], n[~alone]), np.bincount(unit[~alone], (n * ln)[~alone])
        tokens, lns = tokens[tokens > 0], lns[tokens > 0]
        n_units = len(tokens) + n[alone].sum()
        total, ln_total = tokens.sum() + n[alone].sum(), lns.sum() + (n * ln)[alone].sum()
        mean = ln_total / total
        squares = np.sum((lns - mean * tokens) ** 2) + np.sum(n[alone] * (ln[alone] - mean) ** 2)
        error = float(np.sqrt(squares * n_units / (n_units - 1)) / total) if n_units > 1 else None
        error = error if error is not None and np.isfinite(error) else None
        perplexity = float(np.exp(-mean))
        known = sum(len(np.unique(codes[name][(codes[name] >= 0) & (self.group < 0)])) for name in self.given if name in codes)
        ln_joint = float(np.sum(self.scored[is_scored] * ln_p[is_scored]))
        return {
            "given": self.given,
            "log_probability": None if self.new_values else ln_joint,
            "log_probability_given": float(ln_total),
            "log_probability_per_token": float(mean),
            "std_error": error,
            "perplexity": perplexity,
            "perplexity_std_error": None if error is None else perplexity * error,
            "tokens": float(total),
            "units": self.given[0] if self.given else "records",
            "n_units": float(n_units),
            "known_values": known,
            "new_values": len(self.new_values),
            "inference_tokens": self.n_used,
            "dropped_values": self.n_dropped,
            "empty_tokens": float(self.scored[(self.scored > 0) & (n_shown == n_given)].sum()),
        }
