"""A fit applied to new records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from ._fits import Fit
from ._results import Shown
from ._samples import axis_nodes, place_codes
from ._settings import threads_of
from ._tables import Records


class Prediction(Shown):
    """What a fit says of each row of a table.

    Attributes
    ----------
    log_probability : ndarray of shape (n_rows,)
        ln probability that a token shows what the row shows; NaN for rows of new documents, which have none.
    log_probability_given : ndarray of shape (n_rows,)
        The same given the values of seen root nodes with hidden children: ln p(word given document).
    expected_count : ndarray of shape (n_rows,)
        How many tokens such a cell should hold.
    probabilities : dict of ndarrays, each of shape (n_rows, n_values)
        For each hidden node, and with ``impute`` for each seen one: the probabilities of its values in each row. NaN in rows that are
        impossible.
    new_rows : dict of ndarrays, each of shape (n_new, n_values)
        For each node below a document: the probabilities inferred for each new document, in the order of ``new_values``.
    new_values : list of str
        New documents, in the order of their first rows.
    """

    def __init__(self, fit: Fit, found: Mapping[str, Any]) -> None:
        self._fit = fit
        self.log_probability: np.ndarray = found["log_probability"]
        self.log_probability_given: np.ndarray = found["log_probability_given"]
        self.expected_count: np.ndarray = found["expected_count"]
        self.probabilities: dict[str, np.ndarray] = found["probabilities"]
        self.new_rows: dict[str, np.ndarray] = found["new_rows"]
        self.new_values: list[str] = found["new_values"]

    def __len__(self) -> int:
        return len(self.log_probability)

    def most_likely(self, node: str) -> tuple[list[str | None], np.ndarray]:
        """The label of the most probable value of a node in each row, and its probability; none in rows that are impossible."""
        table = self.probabilities[node]
        labels = self._fit.labels(node)
        is_known = ~np.isnan(table[:, 0])
        best = np.where(is_known, np.nan_to_num(table).argmax(axis=1), -1)
        probability = np.where(is_known, table[np.arange(len(table)), best], np.nan)
        return [None if code < 0 else labels[code] for code in best], probability

    def to_pandas(self) -> Any:
        """A frame with the columns that the command line's ``predict`` prints: for each node its most likely value and the probability."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _columns(self) -> dict[str, Any]:
        """The columns that the command line's ``predict`` prints."""
        columns: dict[str, Any] = {"log_probability": self.log_probability}
        if self._fit._core.local_nodes:
            columns["log_probability_given"] = self.log_probability_given
        seen = {one["name"] for one in self._fit.nodes if one["seen"]}
        for node in self.probabilities:
            best, probability = self.most_likely(node)
            columns[f"{node}:imputed" if node in seen else node] = best
            columns[f"{node}:p"] = probability
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Everything that was found, a list for each array; what is not a number is none, and minus infinity the text ``"-inf"``."""
        return {
            "log_probability": _plain(self.log_probability),
            "log_probability_given": _plain(self.log_probability_given),
            "expected_count": _plain(self.expected_count),
            "probabilities": {node: _plain(table) for node, table in self.probabilities.items()},
            "new_rows": {node: _plain(table) for node, table in self.new_rows.items()},
            "new_values": list(self.new_values),
        }

    def __repr__(self) -> str:
        return f"<Prediction of {len(self)} rows: {', '.join(self.probabilities) or 'ln probabilities'}>"

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        columns = self._columns()
        head = [*columns]
        rows = [[_cell(columns[name][row]) for name in head] for row in range(min(SHOWN, len(self)))]
        return head, rows, f"{len(self)} rows" + (f", the first {SHOWN}" if len(self) > SHOWN else "")


#: Rows of a prediction that are shown.
SHOWN = 10


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(array: np.ndarray) -> Any:
    """Lists of numbers as JSON can have them."""
    if array.ndim > 1:
        return [_plain(row) for row in array]
    return [None if np.isnan(value) else "-inf" if value == -np.inf else float(value) for value in array]


def predict(fit: Fit, X: Any, impute: bool, draw: str | int | None, handle_unknown: str, n_jobs: int | None) -> Prediction:
    """Applies a fit to the rows of a table; see :meth:`polyurn.Fit.predict`."""
    if handle_unknown not in ("error", "missing"):
        raise ValueError(f'handle_unknown: expected "error" or "missing", not {handle_unknown!r}')
    seen = axis_nodes(fit._core)
    table = Records(X).named(seen)
    columns, groups, new_values, _ = new_documents(fit, table, seen, drops=handle_unknown == "missing")
    wanted = [one["name"] for one in fit.nodes if not one["seen"] or impute]
    ln_p, ln_given, posteriors, new_rows = _core.predict(
        fit._core, columns, groups, wanted, draw, table.n_rows, threads_of(n_jobs)
    )
    is_new = np.zeros(table.n_rows, dtype=bool) if groups is None else groups[1] >= 0
    ln_given = np.where(is_new, ln_p, ln_given)
    expected = fit._core.intensity * np.exp(np.where(is_new, np.nan, ln_p))
    is_impossible = np.isneginf(ln_p)
    for posterior in posteriors:
        posterior[is_impossible] = np.nan
    return Prediction(
        fit,
        {
            "log_probability": np.where(is_new, np.nan, ln_p),
            "log_probability_given": ln_given,
            "expected_count": expected,
            "probabilities": dict(zip(wanted, posteriors)),
            "new_rows": dict(new_rows),
            "new_values": new_values,
        },
    )


def new_documents(fit: Fit, table: Records, seen: list[str], drops: bool) -> tuple[list[Any], Any, list[str], int]:
    """Codes of the fit for each column, new documents with a code and a group of their own, and what those are called.

    Also how many values were taken as missing because the fit does not know them.
    """
    known = [name for name in table.columns if name in seen]
    if not known and seen:
        raise ValueError(f"no column is named after a node of the fit ({', '.join(seen)})")
    columns: list[Any] = []
    groups, new_values, n_dropped = None, [], 0
    for name in map(str, known):
        codes, labels = table.columns[name][0][:], fit._core.cut(name, table.columns[name][1])
        if name not in fit._core.local_nodes:
            columns.append((name, place_codes(fit, name, codes, labels, drops)[:]))
            n_dropped += int(np.sum((columns[-1][1] < 0) & (codes >= 0)))
            continue
        own = fit.labels(name)
        place = {label: code for code, label in enumerate(own)}
        is_new = np.array([label not in place for label in labels] + [False])
        mapped = np.array([place.get(label, len(own)) for label in labels] + [-1], dtype=np.int64)[codes]
        if is_new[codes].any():
            if groups is not None:
                raise ValueError(f"{name}: rows have new values of two nodes; predict those of one at a time")
            # Labels have codes in the order of their first rows, unless they are categories.
            order = dict.fromkeys(int(code) for code in codes[is_new[codes]])
            number = np.full(len(labels) + 1, -1, dtype=np.int64)
            number[list(order)] = np.arange(len(order))
            weights = np.ones(table.n_rows) if table.counts is None else np.asarray(table.counts, dtype=float)
            new_values = [labels[code] for code in order]
            groups = (name, number[codes], len(order), np.ascontiguousarray(np.nan_to_num(weights)))
        columns.append((name, mapped))
    return columns, groups, new_values, n_dropped
