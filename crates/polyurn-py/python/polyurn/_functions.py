"""The functions that users call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._data import Data, as_dataset
from ._fits import Fit
from ._heldout import Heldout, score_heldout
from ._learners import LEARNING, fit_stream
from ._progress import Progress
from ._results import Curve, Ranking, Score
from ._settings import FITTING, SCORING, engine_settings, request, seed_of, threads_of
from ._tables import hinting
from ._warnings import warn_all, warn_lines

#: Engines whose counts may be fractions.
FRACTIONS = ("vb", "em")


def score(
    model: str,
    X: Any,
    *,
    a: float | Sequence[float] | None = None,
    method: str = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
    kind: str = "auto",
    columns: Sequence[str] | None = None,
    prior: Mapping[str, Any] | None = None,
    shape: float | None = None,
    b: float | None = None,
    pseudo_count: Mapping[str, float] | None = None,
    tied_prior: str | None = None,
    given: str | Sequence[str] | None = None,
    totals: tuple[int, int] | None = None,
    heldout: Any = None,
    handle_unknown: str = "error",
    time_limit: float | None = None,
    max_memory: int | str | None = None,
    checkpoint: Any = None,
    checkpoint_every: float | None = None,
    progress: bool | None = None,
    **engine: Any,
) -> Score | Curve | Heldout:
    """The evidence of one model: ln p(data), all parameters integrated out.

    Parameters
    ----------
    model : str
        Model text, a preset such as ``"lca(3)"``, or the name of a model file.
    X : data
        An array or sparse tensor of counts, a frame of records, the name of a file, or :class:`Data`. See ``kind``.
    a : float or sequence of float, default 1
        Equivalent sample size of the prior and shape of the Gamma prior; several values give a curve.
    method : {"auto", "exact", "smc", "sis", "naive", "anneal", "vb"}, default "auto"
        The engine. ``"vb"`` gives a lower bound.
    random_state : int, generator or None
        The seed. The same integer gives the same numbers as ``--seed`` on the command line.
    n_jobs : int, optional
        Threads; all cores without it. The answer does not depend on it.
    kind : {"auto", "records", "matrix", "tensor"}, default "auto"
        What ``X`` is: records in rows, or counts of cells. ``"auto"`` takes frames of any library for records and arrays for counts;
        ``"matrix"`` makes a frame one of counts, and ``"records"`` an array one of records.
    columns : sequence of str, optional
        Names for the axes in order, or a choice of named columns.
    prior, shape, b, pseudo_count, tied_prior
        The prior, as in a model file (docs/models.md).
    given : str or sequence of str, optional
        Seen root nodes: also give ln p(sequence) given their values.
    totals : (int, int), optional
        With unknown cells: the totals to list.
    heldout : table of records, optional
        Instead of the evidence: how well a fit by ``"vb"`` (``"auto"``) or ``"smc"`` predicts these records, as ``score --heldout``.
    handle_unknown : {"error", "missing"}, default "error"
        What to do with a value of ``heldout`` that the fit does not know, and that cannot be new.
    time_limit : float, optional
        Seconds.
    max_memory : int or str, optional
        Bytes, or text such as ``"4G"``.
    checkpoint : path, optional
        A file that keeps the state of the run, as the command line's ``--checkpoint``: a run that was stopped goes on from it. It is
        removed when the run is done.
    checkpoint_every : float, default 30
        Seconds from one state to the next.
    progress : bool, optional
        A bar; without a word, where somebody looks.
    **engine
        Settings of engines: ``particles``, ``runs``, ``rejuvenate``, ``heat``, ``cooling``, ``split_merge``, ``order``,
        ``resample``, ``ess``; ``bracket``, ``path``, ``sweeps``, ``chains``, ``chain_sweeps``; ``n_init``, ``max_iter``,
        ``tol``, ``maximise``; ``kernel``. One that the engine has no use for is refused.

    Returns
    -------
    Score, Curve or Heldout

    Examples
    --------
    >>> X = [[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]]
    >>> polyurn.score("row -> k[2] -> column", X)
    <Score row -> k[2] -> column: ln evidence -19.8106243507, exact>
    """
    settings = {**_shared(locals(), SCORING), "model": model, "given": given, "totals": totals}
    _refuse_none(a)
    if handle_unknown not in ("error", "missing"):
        raise ValueError(f'handle_unknown: expected "error" or "missing", not {handle_unknown!r}')
    if heldout is not None:
        for name, value in (("given", given), ("totals", totals), ("checkpoint", checkpoint)):
            if value is not None:
                raise ValueError(f"{name}: held-out records have no use for it; leave it out")
        if a is not None and not np.isscalar(a):
            raise ValueError("a: give one value to score held-out records")
        data = as_dataset(X, fractions=method != "smc", kind=kind)
        return score_heldout(data, heldout, {**settings, "a": a}, _is_ours(X), handle_unknown == "missing", progress)
    if handle_unknown != "error":
        raise ValueError("handle_unknown: it is about held-out records; give heldout, or leave it out")
    data = as_dataset(X, fractions=method in FRACTIONS, kind=kind)
    with hinting(X, kind):
        if a is None or np.isscalar(a):
            return _score_at(data, settings, a, _is_ours(X), progress)
        if checkpoint is not None:
            raise ValueError("checkpoint: a curve has none; give one value of a")
        return Curve(_scores_at(data, settings, a, progress))


#: Parameters that go on as they are.
PASSED_ON = ("method", "columns", "prior", "shape", "b", "pseudo_count", "tied_prior", "time_limit", "max_memory", "checkpoint")


def _shared(given: Mapping[str, Any], engines: Sequence[str]) -> dict[str, Any]:
    """What functions with models are asked for alike, out of all their parameters."""
    checkpoint, every = given["checkpoint"], given["checkpoint_every"]
    if every is not None and checkpoint is None:
        raise ValueError("checkpoint_every: there is no checkpoint; give a file")
    return {
        **{name: given[name] for name in PASSED_ON},
        "checkpoint_every": every,
        "seed": seed_of(given["random_state"], checkpoint),
        "threads": threads_of(given["n_jobs"]),
        **engine_settings(given["engine"], engines),
    }


def _refuse_none(a: Any) -> None:
    if a is not None and not np.isscalar(a) and len(a) == 0:
        raise ValueError("a: there is no value in it; give one or more")


def _is_ours(X: Any) -> bool:
    """Whether the library's data were made for this call, so that they can be moved into it."""
    return not isinstance(X, Data)


def _score_at(data: _core.Dataset, settings: dict[str, Any], a: Any, is_last_use: bool, progress: bool | None) -> Score:
    found, interrupted = _scored(data, settings, a, is_last_use, progress)
    warn_all(found.warnings, interrupted)
    return found


def _scores_at(data: _core.Dataset, settings: dict[str, Any], sizes: Any, progress: bool | None) -> list[Score]:
    """A score for each size of the prior; an interrupt ends the list with what the score under way has."""
    scores = []
    for a in sizes:
        found, interrupted = _scored(data, settings, a, False, progress)
        scores.append(found)
        warn_all(found.warnings, interrupted)
        if interrupted:
            break
    return scores


def _scored(
    data: _core.Dataset, settings: dict[str, Any], a: Any, is_last_use: bool, progress: bool | None
) -> tuple[Score, bool]:
    with Progress(progress) as bar:
        result, text, interrupted = _core.score(data, request(a=a, **settings), is_last_use, bar.watcher)
    return Score(json.loads(result), text, settings["model"]), interrupted


def select(model: str, X: Any, **settings: Any) -> Ranking:
    """Every size of a model in a range, ranked by evidence.

    Parameters
    ----------
    model : str
        A model with sizes to choose from: ``"lca(1..8)"``, ``"doc -> topic[5,10,20] -> word"``.
    X : data
        As for :func:`score`.
    **settings
        As for :func:`compare`.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> X = [[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]]
    >>> ranking = polyurn.select("nmf(1..3)", X, random_state=1)
    >>> ranking.best["sizes"], ranking.probabilities.round(3).tolist()
    ({'k': 2}, [0.414, 0.312, 0.273])
    """
    return _rank(True, [model], X, **settings)


def compare(models: Sequence[str], X: Any, **settings: Any) -> Ranking:
    """Models that explain the same columns, ranked by evidence.

    Parameters
    ----------
    models : sequence of str
        Models, with or without sizes to choose from.
    X : data
        As for :func:`score`.
    a : float or sequence of float, optional
        Size of the prior; with several values the ranking is over all of them.
    model_prior : mapping, optional
        Weights of models by their text, or by the size that varies.
    sensitivity : sequence of float, optional
        Multiples of ``a`` at which to rank too; ``[]`` for none.
    bound : bool, default True
        Whether to compute lower bounds, to stand beside the evidence and to leave models out.
    **settings
        All others are those of :func:`score`.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> table = {"rain": [0, 0, 1, 1], "wet": [0, 1, 0, 1], "count": [40, 5, 3, 20]}
    >>> polyurn.compare(["rain -> wet", "independent"], table).best["model"]
    'rain -> wet'
    """
    if isinstance(models, str):
        raise TypeError("models: expected a list of models; for the sizes of one model there is select")
    if not models:
        raise ValueError("models: there is none to compare; give two or more")
    return _rank(False, list(models), X, **settings)


def _rank(
    is_select: bool,
    models: list[str],
    X: Any,
    *,
    a: float | Sequence[float] | None = None,
    method: str = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
    kind: str = "auto",
    columns: Sequence[str] | None = None,
    prior: Mapping[str, Any] | None = None,
    shape: float | None = None,
    b: float | None = None,
    pseudo_count: Mapping[str, float] | None = None,
    tied_prior: str | None = None,
    model_prior: Mapping[Any, float] | None = None,
    sensitivity: Sequence[float] | None = None,
    bound: bool = True,
    time_limit: float | None = None,
    max_memory: int | str | None = None,
    checkpoint: Any = None,
    checkpoint_every: float | None = None,
    progress: bool | None = None,
    **engine: Any,
) -> Ranking:
    _refuse_none(a)
    several = a is not None and not np.isscalar(a)
    if several and sensitivity:
        raise ValueError("sensitivity: a has several values already; leave one of the two out")
    own = {"a": None if several else a, "a_values": a if several else None, "sensitivity": sensitivity, "bound": bound}
    asked = request(**_shared(locals(), SCORING), **own)
    weights = None if model_prior is None else {str(key): float(weight) for key, weight in model_prior.items()}
    data = as_dataset(X, fractions=method in FRACTIONS, kind=kind)
    with hinting(X, kind), Progress(progress) as bar:
        found = _core.rank(is_select, data, models, weights, asked, _is_ours(X), bar.watcher)
    result, text, lines, interrupted = found
    ranking = Ranking(json.loads(result), text)
    heard = {one["message"] for one in ranking.warnings}
    warn_lines([line for line in lines if line not in heard], [one for model in ranking.models for one in model["warnings"]])
    warn_all(ranking.warnings, interrupted)
    return ranking


def fit(
    model: str,
    X: Any,
    *,
    a: float | None = None,
    method: str = "vb",
    random_state: Any = None,
    n_jobs: int | None = None,
    kind: str = "auto",
    columns: Sequence[str] | None = None,
    prior: Mapping[str, Any] | str | None = None,
    shape: float | None = None,
    b: float | None = None,
    pseudo_count: Mapping[str, float] | None = None,
    tied_prior: str | None = None,
    time_limit: float | None = None,
    max_memory: int | str | None = None,
    checkpoint: Any = None,
    checkpoint_every: float | None = None,
    progress: bool | None = None,
    **engine: Any,
) -> Fit:
    """Tables of one model, fitted to data.

    Parameters
    ----------
    model, X, a, random_state, n_jobs, kind, columns, shape, b, pseudo_count, tied_prior, time_limit, max_memory, checkpoint, checkpoint_every, progress
        As for :func:`score`.
    method : {"vb", "exact", "smc", "gibbs", "em", "dual-em", "icm", "svb"}, default "vb"
        The engine. ``"svb"`` learns from a stream that is seen once and not held: ``X`` is the name of a file, a table that is cut
        into batches, or an iterable of tables.
    prior : mapping or "none", optional
        The prior, or none for maximum likelihood by ``"em"``.
    **engine
        Settings of engines: those of particles as for :func:`score`, ``draws``; ``n_init``, ``max_iter``, ``tol``, ``init``
        (tables to start from, by node), ``maximise``, ``mode``, ``update``, ``trials``; ``chains``, ``sweeps``, ``warm_up``,
        ``thin``, ``moves``. For ``"svb"``: ``tokens`` (of the whole stream), ``batch`` (records), ``passes``, ``kappa``, ``tau``, ``seen``,
        ``local`` (seen root nodes whose values have rows of their own); all sizes are declared.

    Returns
    -------
    Fit

    Examples
    --------
    >>> X = [[4, 4, 0, 0], [4, 4, 0, 0], [0, 0, 4, 4]]
    >>> fit = polyurn.fit("row -> k[2] -> column", X, method="em", prior="none", random_state=1)
    >>> abs(fit.kl_divergence) < 1e-6
    True
    """
    if method == "svb":
        return fit_stream(X, {**_shared(locals(), LEARNING), "model": model, "a": a}, kind, progress)
    asked = request(**_shared(locals(), FITTING), model=model, a=a)
    data = as_dataset(X, fractions=method in FRACTIONS, kind=kind)
    with hinting(X, kind), Progress(progress) as bar:
        core, summary, interrupted = _core.fit(data, asked, _is_ours(X), bar.watcher)
    found = Fit(core, json.loads(summary))
    warn_all(found.warnings, interrupted)
    return found
