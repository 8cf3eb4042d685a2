"""Samples of new data in the terms of a fit: rows of a table, or documents with their tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._encode import Codes, Looked, looked, narrow
from ._fits import Fit
from ._tables import Records


#: Rows that are asked about at once.
PART = 1 << 16


def axis_nodes(core: _core.Fit) -> list[str]:
    """The seen nodes in the order of the data's axes: presets call theirs i1, i2, .. whatever the order of their nodes."""
    names = [name for name, _, seen, _ in core.nodes if seen]
    if all(re.fullmatch(r"i\d+", name) for name in names):
        names.sort(key=lambda name: int(name[1:]))
    return names


@dataclass
class Answer:
    """What a fit says of samples."""

    ln_p: np.ndarray
    posteriors: list[np.ndarray]


class Samples:
    """Samples, ready to be asked about."""

    n_samples: int
    n_tokens: float

    def tokens(self) -> np.ndarray:
        """Tokens of each sample."""
        raise NotImplementedError

    def answer(self, hidden: list[str]) -> Answer:
        """ln probabilities, and posteriors of hidden nodes."""
        raise NotImplementedError

    def most_likely(self, hidden: list[str]) -> np.ndarray:
        """The value with the largest posterior of each sample; a column for each node where there are several."""
        return best_of(self.answer(hidden).posteriors)

    def ln_probabilities(self) -> np.ndarray:
        """ln probability of each sample."""
        raise NotImplementedError

    def ln_total(self) -> float:
        """ln probability of all samples, counted as often as they are."""
        raise NotImplementedError

    def mean_ln_probability(self) -> float:
        """The same for a token, none of them predicted from itself."""
        raise NotImplementedError


def best_of(posteriors: list[np.ndarray]) -> np.ndarray:
    """The value with the largest posterior of each sample; a column for each node where there are several."""
    if not posteriors:
        raise ValueError("this model has no hidden node whose values samples could have")
    best = [posterior.argmax(axis=1) for posterior in posteriors]
    return best[0] if len(best) == 1 else np.stack(best, axis=1)


def place_codes(fit: Fit, node: str, codes: Codes, labels: list[str], drops: bool) -> Looked:
    """Codes of the fit for the values of a column; -1 for missing values. They are looked up part by part: there may be very many."""
    labels = fit._core.cut(node, labels)
    place = {name: code for code, name in enumerate(fit.labels(node))}
    table = narrow(np.array([place.get(name, -2) for name in labels] + [-1], dtype=np.int64), len(place))
    is_unknown = table == -2
    if is_unknown.any() and not drops:
        for part in parts_of(len(codes)):
            found = codes[part][is_unknown[codes[part]]]
            if len(found):
                raise ValueError(
                    f"value `{labels[int(found[0])]}` of `{node}` was not in the data of the fit; correct it, or take such values as "
                    'missing with handle_unknown="missing"'
                )
    table[is_unknown] = -1
    return looked(codes, table)


def parts_of(n_rows: int) -> Iterator[slice]:
    """Rows in parts, so that what is worked out of each need not be held for all."""
    return (slice(start, min(start + PART, n_rows)) for start in range(0, n_rows, PART))


class Rows(Samples):
    """Rows of a table, each a sample."""

    def __init__(self, fit: Fit, table: Records, drops: bool, draw: str | None, threads: int) -> None:
        self.fit, self.draw, self.threads = fit, draw, threads
        self.n_samples = table.n_rows
        self.counts = None if table.counts is None else table.counts.astype(float)
        self.n_tokens = float(self.n_samples if self.counts is None else self.counts.sum())
        seen = axis_nodes(fit._core)
        known = [name for name in table.columns if name in seen]
        if not known and seen:
            raise ValueError(f"no column is named after a node of the fit ({', '.join(seen)})")
        self.columns = [(str(name), place_codes(fit, str(name), *table.columns[name], drops)) for name in known]

    def answer(self, hidden: list[str]) -> Answer:
        return self._answer(slice(0, self.n_samples), hidden)

    def _answer(self, part: slice, hidden: list[str]) -> Answer:
        columns = [(name, codes[part]) for name, codes in self.columns]
        n_rows = part.stop - part.start
        ln_p, _, posteriors, _ = _core.predict(self.fit._core, columns, None, hidden, self.draw, n_rows, self.threads)
        return Answer(ln_p, posteriors)

    def most_likely(self, hidden: list[str]) -> np.ndarray:
        return self._gathered(lambda part: best_of(self._answer(part, hidden).posteriors))

    def ln_probabilities(self) -> np.ndarray:
        return self._gathered(lambda part: self._answer(part, []).ln_p)

    def _gathered(self, ask: Callable[[slice], np.ndarray]) -> np.ndarray:
        """What is answered part by part, in one array."""
        found: np.ndarray | None = None
        for part in parts_of(self.n_samples):
            own = ask(part)
            if found is None:
                found = np.empty((self.n_samples, *own.shape[1:]), dtype=own.dtype)
            found[part] = own
        return ask(slice(0, 0)) if found is None else found

    def tokens(self) -> np.ndarray:
        return np.ones(self.n_samples) if self.counts is None else self.counts

    def ln_total(self) -> float:
        ln_p = self.ln_probabilities()
        if self.counts is None:
            return float(np.sum(ln_p))
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

    def tokens(self) -> np.ndarray:
        return np.bincount(self.groups, weights=self.counts, minlength=self.n_samples)

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
