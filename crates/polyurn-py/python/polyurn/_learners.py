"""Fits of streams, by stochastic variational Bayes: batches that are seen once and not kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _core
from ._data import Data
from ._fits import Fit
from ._progress import Progress
from ._settings import request, seen_of
from ._streams import batch_of
from ._tables import is_table
from ._warnings import warn_all

#: Settings of the engine of streams.
LEARNING = ("tokens", "batch", "passes", "kappa", "tau", "seen", "local", "kernel")
#: Records of a batch, unless asked otherwise; as on the command line.
BATCH = 10_000


def fit_stream(X: Any, settings: Mapping[str, Any], kind: str, progress: bool | None) -> Fit:
    """Learns tables from a file, a table that is cut into batches, or batches one after another."""
    asked = dict(settings)
    seen, local = asked.pop("seen", None), asked.pop("local", None)
    passes, n_rows = asked.pop("passes", None), asked.pop("batch", None)
    for name in ("checkpoint", "checkpoint_every"):
        if asked.pop(name, None) is not None:
            raise ValueError(f'{name}: method "svb" keeps no state here; the command line does, or leave it out')
    # What is wrong with these is said by their names.
    request(passes=passes, batch=n_rows, local=[local] if isinstance(local, str) else local)
    passes, n_rows = (1 if passes is None else int(passes)), (BATCH if n_rows is None else int(n_rows))
    if passes < 1 or n_rows < 1:
        raise ValueError(f"passes and batch: expected whole numbers from 1 on, not {passes} and {n_rows}")
    if isinstance(X, Data):
        raise ValueError("rows of Data are merged and have lost their order; give a file, a table, or batches")
    if passes > 1 and isinstance(X, Iterator):
        raise ValueError(f"passes={passes}: these batches can be gone through only once; give a list of them, or one pass")
    core = _core.Learner(request(**asked), seen_of(seen), [local] if isinstance(local, str) else local, n_rows)
    interrupted = False
    with Progress(progress) as bar:
        try:
            interrupted = _learn(core, X, kind, passes, bar.watcher)
        except KeyboardInterrupt:
            # It came between two batches. What was learned is an answer, if there was anything.
            if core.n_tokens == 0:
                raise
            interrupted = True
    found, summary = core.finish(os.fspath(X) if isinstance(X, (str, os.PathLike)) else "stream", interrupted)
    fit = Fit(found, json.loads(summary))
    warn_all(fit.warnings, interrupted)
    return fit


def _learn(core: _core.Learner, X: Any, kind: str, passes: int, watcher: Any) -> bool:
    """Goes through all batches as often as is asked for, until somebody interrupts it or the time is up. Whether the first was so."""
    for number in range(passes):
        if number > 0:
            core.start_pass()
        is_file = isinstance(X, (str, os.PathLike))
        for part in [X] if is_file else _parts(X):
            is_cut, interrupted = core.read(os.fspath(part), None, watcher) if is_file else core.update(*batch_of(part, kind), watcher)
            if is_cut:
                return interrupted
    return False


def _parts(X: Any) -> Iterable[Any]:
    """Batches that were given one by one, or all rows at once."""
    is_batches = isinstance(X, Iterator) or (isinstance(X, Sequence) and len(X) > 0 and is_table(X[0]))
    return X if is_batches and not is_table(X) else [X]
