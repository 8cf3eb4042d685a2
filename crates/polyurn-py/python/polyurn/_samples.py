"""Samples of new data in the terms of a fit: rows of a table, or documents with their tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._data import COUNT, _counts, _plain_numbers, table_columns
from ._encode import encode
from ._fits import Fit


def axis_nodes(core: _core.Fit) -> list[str]:
    """The seen nodes in the order of the data's axes: presets call theirs i1, i2, .. whatever the order of their nodes."""
    names = [name for name, _, seen, _ in core.nodes if seen]
    if all(re.fullmatch(r"i\d+", name) for name in names):
        names.sort(key=lambda name: int(name[1:]))
    return names


@dataclass
class Table:
    """Rows of a table, encoded by themselves."""

    columns: dict[str | None, tuple[np.ndarray, list[str]]]
    counts: np.ndarray | None
    n_rows: int

    def dataset(self, fractions: bool, weights: np.ndarray | None) -> _core.Dataset:
        """The same for a fit; columns without names bind by their order."""
        counts = self.counts
        if weights is not None:
            counts = _counts(weights if counts is None else counts * weights)
        encoded: list[Any] = [(None, codes, labels, None, 0) for codes, labels in self.columns.values()]
        return _core.Dataset.from_codes("data", encoded, counts, self.n_rows, fractions)


def rows_of(X: Any, names: list[str] | None = None) -> Table:
    """The columns of a table or an array of records."""
    by_name = table_columns(X, names)
    held = by_name.pop(COUNT, None)
    counts = None if held is None else _counts(_plain_numbers(held))
    columns = {name: encode(column) for name, column in by_name.items()}
    n_rows = len(counts) if counts is not None else len(next(iter(columns.values()))[0]) if columns else 0
    return Table(columns, counts, n_rows)


@dataclass
class Answer:
    """What a fit says of samples."""

    ln_p: np.ndarray
    posteriors: list[np.ndarray]


class Samples:
    """Samples, ready to be asked about."""

    n_samples: int
    n_tokens: float

    def answer(self, hidden: list[str]) -> Answer:
        """ln probabilities, and posteriors of hidden nodes."""
        raise NotImplementedError

    def ln_probabilities(self) -> np.ndarray:
        """ln probability of each sample."""
        raise NotImplementedError

    def ln_total(self) -> float:
        """ln probability of all samples, counted as often as they are."""
        raise NotImplementedError

    def mean_ln_probability(self) -> float:
        """The same for a token, none of them predicted from itself."""
        raise NotImplementedError


def place_codes(fit: Fit, node: str, codes: np.ndarray, labels: list[str], drops: bool) -> np.ndarray:
    """Codes of the fit for the values of a column; -1 for missing values."""
    place = {name: code for code, name in enumerate(fit.labels(node))}
    mapped = np.array([place.get(name, -2) for name in labels] + [-1], dtype=np.int64)[codes]
    is_unknown = mapped == -2
    if is_unknown.any():
        if not drops:
            name = labels[int(codes[is_unknown][0])]
            raise ValueError(
                f"value `{name}` of `{node}` was not in the data of the fit; correct it, or take such values as missing "
                'with handle_unknown="missing"'
            )
        mapped[is_unknown] = -1
    return mapped


class Rows(Samples):
    """Rows of a table, each a sample."""

    def __init__(self, fit: Fit, table: Table, drops: bool, draw: str | None, threads: int) -> None:
        self.fit, self.draw, self.threads = fit, draw, threads
        self.n_samples = table.n_rows
        self.counts = np.ones(table.n_rows) if table.counts is None else table.counts.astype(float)
        self.n_tokens = float(self.counts.sum())
        seen = axis_nodes(fit._core)
        known = [name for name in table.columns if name in seen]
        if not known and seen:
            raise ValueError(f"no column is named after a node of the fit ({', '.join(seen)})")
        self.columns = [(str(name), place_codes(fit, str(name), *table.columns[name], drops)) for name in known]

    def answer(self, hidden: list[str]) -> Answer:
        ln_p, _, posteriors, _ = _core.predict(
            self.fit._core, self.columns, None, hidden, self.draw, self.n_samples, self.threads
        )
        return Answer(ln_p, posteriors)

    def ln_probabilities(self) -> np.ndarray:
        return self.answer([]).ln_p

    def ln_total(self) -> float:
        ln_p = self.ln_probabilities()
        return float(np.sum(np.where(self.counts > 0, self.counts * ln_p, 0.0)))

    def mean_ln_probability(self) -> float:
        return self.ln_total() / self.n_tokens


class Groups(Samples):
    """Slices of the first axis of a tensor of counts, each a document of its own."""

    def __init__(self, fit: Fit, coo: Any, root: str, nodes: list[str], draw: str | None, threads: int) -> None:
        self.fit, self.root, self.draw, self.threads = fit, root, draw, threads
        coords, values, shape = coo
        sizes = {one["name"]: one["size"] for one in fit.nodes}
        if len(shape) != len(nodes):
            raise ValueError(f"the model was fitted to {len(nodes)} axes, and these data have {len(shape)}")
        for node, size in zip(nodes[1:], shape[1:]):
            if size != sizes[node]:
                raise ValueError(f"axis {node} has {size} values, but {sizes[node]} in the data of the fit")
        # Documents one after another, so that every other token of one can be told.
        order = np.argsort(coords[0], kind="stable")
        self.groups = np.asarray(coords[0])[order].astype(np.int64)
        self.counts = np.asarray(values, dtype=float)[order]
        self.n_samples, self.n_tokens = int(shape[0]), float(self.counts.sum())
        new = np.full(len(self.groups), sizes[root], dtype=np.int64)
        rest = [(node, np.asarray(axis)[order].astype(np.int64)) for node, axis in zip(nodes[1:], coords[1:])]
        self.columns = [(root, new), *rest]

    def _ask(self, weights: np.ndarray) -> Any:
        groups = (self.root, self.groups, self.n_samples, np.ascontiguousarray(weights))
        return _core.predict(self.fit._core, self.columns, groups, [], self.draw, len(self.groups), self.threads)

    def answer(self, hidden: list[str]) -> Answer:
        _, ln_given, _, new_rows = self._ask(self.counts)
        parents = {one["name"]: one["parents"] for one in self.fit.nodes}
        own = {name: cells for name, cells in new_rows}
        posteriors = [own[name] for name in hidden if name in own and parents[name] == [self.root]]
        return Answer(ln_given, posteriors)

    def ln_probabilities(self) -> np.ndarray:
        _, ln_given, _, _ = self._ask(self.counts)
        return np.bincount(self.groups, weights=self.counts * ln_given, minlength=self.n_samples)

    def ln_total(self) -> float:
        return float(self.ln_probabilities().sum())

    def mean_ln_probability(self) -> float:
        used, scored = self._halves()
        if scored.sum() == 0:
            raise ValueError("there are no tokens to score: a document needs two, one to tell about it and one to be predicted")
        _, ln_given, _, _ = self._ask(used)
        held = scored > 0
        return float(np.sum(scored[held] * ln_given[held]) / scored.sum())

    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each cell that tell about their document, and tokens that are scored: every second one."""
        n = self.counts
        before = np.cumsum(n) - n
        starts = np.flatnonzero(np.diff(self.groups, prepend=-1))
        offset = before[starts][np.cumsum(np.diff(self.groups, prepend=-1) != 0) - 1] if len(n) else before
        before = before - offset
        scored = np.floor((before + n) / 2) - np.floor(before / 2)
        is_fraction = n != np.floor(n)
        scored = np.where(is_fraction, n / 2, scored)
        return n - scored, scored
