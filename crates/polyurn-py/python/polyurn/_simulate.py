"""Data drawn from a model or from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._data import Data, as_dataset
from ._progress import Progress
from ._settings import request, seed_of, seen_of
from ._warnings import warn_lines


def simulate(
    model: str | None = None,
    tokens: int | None = None,
    *,
    table: Any = None,
    kind: str = "auto",
    seen: Sequence[str] | Mapping[str, int | None] | None = None,
    full: bool = False,
    a: float | None = None,
    random_state: Any = None,
    prior: Mapping[str, Any] | None = None,
    shape: float | None = None,
    b: float | None = None,
    pseudo_count: Mapping[str, float] | None = None,
    tied_prior: str | None = None,
    progress: bool | None = None,
) -> Data:
    """Data drawn from a model: tables from the prior, tokens from the tables. Or tokens drawn from a table of counts.

    Parameters
    ----------
    model : str, optional
        A model whose nodes all have sizes, or get them by ``seen``.
    tokens : int, optional
        How many; drawn from the prior without it, which needs ``b``.
    table : data, optional
        Instead of a model: counts or records as for :func:`score`, from which tokens are drawn with replacement.
    kind : {"auto", "records", "matrix", "tensor"}, default "auto"
        What ``table`` is, as for :func:`score`.
    seen : sequence of str or mapping, optional
        The seen nodes, with sizes where the model gives none; all without it.
    full : bool, default False
        Whether hidden nodes are among the columns.
    a, random_state, prior, shape, b, pseudo_count, tied_prior, progress
        As for :func:`score`.

    Returns
    -------
    Data

    Examples
    --------
    >>> polyurn.simulate("r[2] -> i[3] j[4]", 10, seen=["i", "j"], random_state=1).n_tokens
    10.0
    >>> polyurn.simulate(table=[[3, 0], [0, 5]], tokens=20, random_state=1)
    <Data axis 0[2], axis 1[2]: 20 tokens, 2 distinct rows>
    """
    # What is wrong with it is said by its name.
    request(tokens=tokens)
    if table is not None:
        others = {"model": model, "seen": seen, "a": a, "prior": prior, "shape": shape, "b": b}
        others |= {"pseudo_count": pseudo_count, "tied_prior": tied_prior, "full": full or None}
        wrong = [name for name, value in others.items() if value is not None]
        if wrong:
            raise ValueError(f"{wrong[0]}: tokens are drawn from a table of counts, which has no model and no prior; leave it out")
        if tokens is None:
            raise ValueError("tokens: say how many tokens to draw from the table")
        return Data(_core.resample(as_dataset(table, fractions=False, kind=kind), tokens, seed_of(random_state)))
    if kind != "auto":
        raise ValueError("kind: it says what table is, and there is none; leave it out")
    if model is None:
        raise ValueError("give a model, or a table to draw from")
    asked = request(
        model=model,
        a=a,
        prior=prior,
        shape=shape,
        b=b,
        pseudo_count=pseudo_count,
        tied_prior=tied_prior,
        seed=seed_of(random_state),
    )
    with Progress(progress) as bar:
        names, sizes, is_seen, values, counts, said = _core.simulate(tokens, seen_of(seen), asked, bar.watcher)
    warn_lines(said)
    shown = [ix for ix in range(len(names)) if full or seen is None or is_seen[ix]]
    # Cells in order of their coordinates, as the command line writes them; those that differ in hidden values alone are one.
    cells = np.ascontiguousarray(values[:, shown])
    order = np.lexsort([cells[:, ix] for ix in reversed(range(len(shown)))]) if len(shown) and len(cells) else np.arange(len(cells))
    cells, counts = cells[order], counts[order]
    is_new = np.ones(len(cells), dtype=bool)
    is_new[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    counts = np.add.reduceat(counts, np.flatnonzero(is_new)) if len(cells) else counts
    cells = cells[is_new]
    columns: list[Any] = [(names[ix], np.ascontiguousarray(cells[:, at]), None, sizes[ix], 0) for at, ix in enumerate(shown)]
    merged = _core.Dataset.from_codes("simulated", columns, counts, len(counts), False)
    return Data(merged)
