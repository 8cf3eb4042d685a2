"""The evidence of a stream while it comes in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._data import Data, as_coo, n_axes
from ._encode import handed, integers
from ._results import Score, _axes, _shown, _table_html
from ._settings import number, request, seed_of, seen_of, threads_of
from ._tables import Frame, Records, check_axes, check_kind, counts_of, is_table, refuse_records
from ._warnings import warn_all


class Stream:
    """The running evidence of data that come in batch by batch and are not kept: particles follow the tokens as they come.

    After any batch ``log_evidence`` is that of all tokens so far, with the numbers of ``score --stream`` of the command line. It does
    not matter how tokens are cut into batches.

    Parameters
    ----------
    model : str
        Model text, a preset, or the name of a model file. All sizes are declared: labels to come are not known.
    b : float, optional
        Rate of the Gamma prior of the total, which has no default in a stream; a model file may have it.
    seen : sequence of str or mapping, optional
        The seen nodes, with sizes where the model gives none; by default the columns that nodes are named after.
    a, prior, shape, pseudo_count, tied_prior
        The prior, as for :func:`score`.
    columns : sequence of str, optional
        Names for the axes in order, or a choice of named columns.
    random_state : int, generator or None
        The seed, as for :func:`score`.
    n_jobs : int, optional
        Threads; all cores without it. The answer does not depend on it.
    window : int, default 10000
        Latest tokens whose hidden values are drawn again.
    max_memory : int or str, default "4G"
        Memory for particles.
    **engine
        ``particles``, ``runs``, ``rejuvenate``, ``order`` (``"random"`` shuffles within batches), ``resample``, ``ess`` and ``kernel``.

    Attributes
    ----------
    log_evidence : float
        ln p(all tokens so far).
    std_error : float or None
        Its standard error; none as long as nothing had to be drawn.
    n_tokens : int
        Tokens so far.
    history : list of dict
        How it stood after each batch: ``tokens``, ``log_marginal`` and its parts, ``std_error``, ``batch_log_p_sequence``, ..

    Examples
    --------
    >>> stream = polyurn.Stream("class[2] -> a[2] b[2]", b=0.1, random_state=1)
    >>> for batch in [{"a": ["x", "x"], "b": ["u", "u"]}, {"a": ["y", "x"], "b": ["v", None]}]:
    ...     stream = stream.update(batch)
    >>> stream.n_tokens, len(stream.history)
    (4, 2)
    """

    def __init__(
        self,
        model: str,
        *,
        b: float | None = None,
        seen: Sequence[str] | Mapping[str, int | None] | None = None,
        a: float | None = None,
        prior: Mapping[str, Any] | None = None,
        shape: float | None = None,
        pseudo_count: Mapping[str, float] | None = None,
        tied_prior: str | None = None,
        columns: Sequence[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        window: int | None = None,
        max_memory: int | str | None = None,
        **engine: Any,
    ) -> None:
        unknown = [name for name in engine if name not in ENGINE]
        if unknown:
            raise TypeError(f"unknown setting {unknown[0]!r}; streams have {', '.join(ENGINE)}")
        self._is_seeded = random_state is not None
        self._seen = seen_of(seen)
        own: dict[str, Any] = {"model": model, "b": b, "a": a, "prior": prior, "shape": shape, "pseudo_count": pseudo_count}
        own |= {"tied_prior": tied_prior, "columns": columns, "window": window, "max_memory": max_memory, **engine}
        self._asked: dict[str, Any] = {**own, "seed": seed_of(random_state), "threads": threads_of(n_jobs)}
        self.model = model
        self.history: list[dict[str, Any]] = []
        self._core = _core.Stream(request(**self._asked), self._seen)

    def update(self, X: Any, *, kind: str = "auto") -> Stream:
        """Takes the next records.

        When something about a batch is wrong, none of it is taken. After an interrupt what was taken stays: ``n_tokens`` says how much.

        Parameters
        ----------
        X : data
            Records, or counts of cells, as for :func:`score`. Counts are whole.
        kind : {"auto", "records", "matrix", "tensor"}, default "auto"
            What ``X`` is, as for :func:`score`.

        Returns
        -------
        self
        """
        columns, counts, n_rows = batch_of(X, kind)
        line, said, interrupted = self._core.update(columns, counts, n_rows)
        self.history.append({name: number(value) for name, value in json.loads(line).items()})
        warn_all(json.loads(said), interrupted)
        return self

    @property
    def log_evidence(self) -> float:
        return self.score().log_evidence

    @property
    def std_error(self) -> float | None:
        return self.score().std_error

    @property
    def n_tokens(self) -> int:
        return self._core.n_tokens

    @property
    def seed(self) -> int:
        """The seed, given or drawn."""
        return self._core.seed

    def score(self) -> Score:
        """The evidence of all tokens so far, in the form of any other."""
        found, text = self._core.score()
        return Score(json.loads(found), text, self.model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a state to go on from, which ``score --stream --state`` of the command line reads too."""
        with open(path, "wb") as out:
            out.write(self._core.state())

    def load(self, path: str | os.PathLike[str]) -> Stream:
        """Goes on from a state of :meth:`save` or of the command line.

        Model, prior and settings must be those that made it; without ``random_state`` its seed is taken over.

        Returns
        -------
        self
        """
        if not self._is_seeded:
            seed = _core.checkpoint_seed(os.fspath(path))
            self._asked["seed"] = self._asked["seed"] if seed is None else seed
        core = _core.Stream(request(**self._asked), self._seen)
        core.go_on_from(Path(path).read_bytes(), os.fspath(path))
        self._core, self.history = core, []
        return self

    def to_dict(self) -> dict[str, Any]:
        """The score of all tokens, by the names of the command line's ``--json``."""
        return self.score().to_dict()

    def to_pandas(self) -> Any:
        """A frame with one row for each batch."""
        import pandas as pd

        return pd.DataFrame(self.history)

    def plot(self, ax: Any = None) -> Any:
        """ln evidence against tokens, with its error. Needs matplotlib."""
        ax = _axes(ax)
        tokens = [one["tokens"] for one in self.history]
        errors = [one["std_error"] or 0.0 for one in self.history]
        ax.errorbar(tokens, [one["log_marginal"] for one in self.history], errors, marker="o")
        ax.set_xlabel("tokens")
        ax.set_ylabel("ln evidence")
        return ax

    def __repr__(self) -> str:
        found = self.score()
        return f"<Stream {self.model}: {self.n_tokens} tokens, ln evidence {_shown(found.log_evidence, found.std_error)}>"

    def __str__(self) -> str:
        return str(self.score())

    def _repr_html_(self) -> str:
        names = ["tokens", "log_marginal", "std_error", "batch_log_p_sequence", "ess_min"]
        rows = [[_cell(one[name]) for name in names] for one in self.history[-10:]]
        return _table_html(["tokens", "ln evidence", "error", "ln p(batch)", "effective"], rows, self.model)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_core": self._core.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_core")
        vars(self).update(state)
        self._core = _core.Stream(request(**self._asked), self._seen)
        self._core.go_on_from(saved, "pickle")


#: Settings of engines that a stream has a use for.
ENGINE = ("particles", "runs", "rejuvenate", "order", "resample", "ess", "kernel")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def batch_of(X: Any, kind: str) -> tuple[list[Any], np.ndarray | None, int]:
    """Columns of a batch with their names and labels, its counts, and the number of rows."""
    check_kind(kind)
    if isinstance(X, (Data, str, os.PathLike)):
        raise ValueError("a batch is a frame or an array; rows of a file or of Data are merged and have lost their order")
    frame = Frame(X) if is_table(X) else None
    if kind == "records" and frame is None:
        if isinstance(X, tuple) or hasattr(X, "tocoo") or hasattr(X, "fill_value"):
            refuse_records(kind)
        records = Records(X)
    elif frame is not None and frame.kind(kind) == "records":
        records = Records(frame)
    else:
        cells = X if frame is None else frame.matrix()
        check_axes(kind, n_axes(cells))
        coords, values, _ = as_coo(cells)
        return [(None, integers(axis), None) for axis in coords], counts_of(values), len(values)
    named = [(name if records.is_named else None, handed(codes), labels) for name, (codes, labels) in records.columns.items()]
    return named, records.counts, records.n_rows
