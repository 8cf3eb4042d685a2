"""Warnings of the library as Python warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any


class PolyurnWarning(UserWarning):
    """Something to know about a result that is still usable."""


class DataWarning(PolyurnWarning):
    """Something odd in the data, or about how they fit the model."""


class PriorWarning(PolyurnWarning):
    """Something to know about the prior."""


class EstimateWarning(PolyurnWarning):
    """An estimate is less firm than its error says."""


class NotConvergedWarning(PolyurnWarning):
    """Sweeps or chains have not come to rest."""


class LabelWarning(PolyurnWarning):
    """Hidden values can be exchanged, and what that means for tables."""


class TimeWarning(PolyurnWarning):
    """The time limit came before all was done."""


class InterruptedWarning(TimeWarning):
    """Somebody interrupted the run, and the answer is from what was finished."""


_CLASSES: dict[str, type[PolyurnWarning]] = {
    "columns_left_out": DataWarning,
    "duplicate_rows": DataWarning,
    "counts_rounded": DataWarning,
    "impossible_data": DataWarning,
    "impossible_start": DataWarning,
    "unused_values": DataWarning,
    "odd": DataWarning,
    "same_model": DataWarning,
    "edges_added": DataWarning,
    "inconsistent_prior": PriorWarning,
    "size_without_maximum": PriorWarning,
    "label_averaged": LabelWarning,
    "labels_of_one_run": LabelWarning,
    "labels_of_one_chain": LabelWarning,
    "low_effective_sample_size": EstimateWarning,
    "runs_disagree": EstimateWarning,
    "dominant_run": EstimateWarning,
    "no_error_estimate": EstimateWarning,
    "few_moves": EstimateWarning,
    "bounds_cross": EstimateWarning,
    "wide_bracket": EstimateWarning,
    "chains_apart": EstimateWarning,
    "labels_assumed": EstimateWarning,
    "labels_overlap": EstimateWarning,
    "below_bound": EstimateWarning,
    "no_hits": EstimateWarning,
    "not_converged": NotConvergedWarning,
    "starts_disagree": NotConvergedWarning,
    "chains_disagree": NotConvergedWarning,
    "time_up": TimeWarning,
    "starts_cut": TimeWarning,
    "sweeps_cut": TimeWarning,
    "models_left_out": TimeWarning,
    "values_left_out": TimeWarning,
    "runs_kept": TimeWarning,
    "stream_cut": TimeWarning,
    "stream_stopped": TimeWarning,
    "other_total": DataWarning,
    "scattered": DataWarning,
    "known_by_number": DataWarning,
}


def warn_all(said: Iterable[dict[str, Any]], interrupted: bool) -> None:
    """Warns of everything that a result says, and of an interrupt."""
    for one in said:
        _warn(one["message"], _CLASSES.get(one["kind"], PolyurnWarning))
    if interrupted:
        _warn("interrupted: the answer is from what was finished until then", InterruptedWarning)


def warn_lines(lines: Iterable[str], said: Iterable[dict[str, Any]] = ()) -> None:
    """Warns of lines that are text already, each in the class of what ends it."""
    kinds = {one["message"]: one["kind"] for one in said}
    for line in lines:
        kind = next((kind for message, kind in kinds.items() if line.endswith(message)), "")
        _warn(line, _CLASSES.get(kind, PolyurnWarning))


def warn_of_data(message: str) -> None:
    """Warns of something odd in data."""
    _warn(message, DataWarning)


def _warn(message: str, category: type[PolyurnWarning]) -> None:
    """Warns at the line of the caller that is none of ours."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
