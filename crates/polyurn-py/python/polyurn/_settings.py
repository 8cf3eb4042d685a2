"""From keyword arguments to what the library is asked for."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core


PARTICLES = ("particles", "runs", "rejuvenate", "heat", "cooling", "split_merge", "order", "resample", "ess")
SWEEPS = ("n_init", "max_iter", "tol", "maximise")
#: Settings of engines that score, and of those that fit.
SCORING = (*PARTICLES, *SWEEPS, "bracket", "path", "sweeps", "chains", "chain_sweeps", "kernel")
FITTING = (
    *PARTICLES,
    *SWEEPS,
    *("init", "mode", "update", "trials", "chains", "sweeps", "warm_up", "thin", "moves", "draws", "kernel"),
)


def engine_settings(engine: Mapping[str, Any], known: Sequence[str], error: type[Exception] = TypeError) -> dict[str, Any]:
    """Settings of an engine, whose names must be known."""
    unknown = [name for name in engine if name not in known]
    if unknown:
        raise error(f"unknown setting {unknown[0]!r}; engines have {', '.join(known)}")
    return dict(engine)


def seed_of(random_state: Any, checkpoint: Any = None) -> int:
    """The seed that a ``random_state`` stands for: an integer is the seed itself, as on the command line.

    Without one it is that of the run whose state is in ``checkpoint``, if there is such a file.
    """
    if random_state is None:
        begun = None if checkpoint is None else _core.checkpoint_seed(os.fspath(checkpoint))
        return secrets.randbits(53) if begun is None else begun
    if isinstance(random_state, (int, np.integer)):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state: a seed is a whole number from 0 to 2^64 - 1, not {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**53))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    raise ValueError(f"random_state: expected an integer, a generator of NumPy or None, not {random_state!r}")


def seen_of(seen: Sequence[str] | Mapping[str, int | None] | None) -> list[tuple[str, int | None]] | None:
    """Seen nodes, with sizes where there are some."""
    if seen is None:
        return None
    if isinstance(seen, str):
        seen = [seen]
    return list(seen.items()) if isinstance(seen, Mapping) else [(name, None) for name in seen]


def threads_of(n_jobs: int | None, default: int | None = None) -> int:
    """Threads; negative numbers count back from all cores, as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        return default or cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise ValueError(f"n_jobs: expected a whole number, not {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; give a number of threads, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def bytes_of(max_memory: Any, name: str = "max_memory") -> int:
    """``4e9``, ``"4G"`` or ``"500MiB"``."""
    units = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
    try:
        if not isinstance(max_memory, str):
            n = float(max_memory)
        else:
            text = max_memory.strip().lower().removesuffix("b")
            number = text.rstrip("kmgti")
            n = float(number) * units[text[len(number) :]]
        if not (n > 0 and math.isfinite(n)):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{name}: {max_memory!r} is no amount of memory; write 4G or 500M") from None
    return int(n)


def request(**settings: Any) -> str:
    """The settings that were given, as JSON. What cannot be what it should be is refused here, by its name."""
    given = {name: _checked(name, value) for name, value in settings.items() if value is not None}
    return json.dumps(given)


def _checked(name: str, value: Any) -> Any:
    """A setting as the library reads it."""
    value = _plain(value)
    if name == "checkpoint":
        return os.fspath(value)
    if name == "max_memory":
        return bytes_of(value)
    if name in ("maximise", "given", "columns") and isinstance(value, str):
        value = [value]
    if name == "init":
        value = {"tables": _start(value)}
    expected = EXPECTED.get(name)
    if expected is not None and not expected[1](value):
        raise ValueError(f"{name}: expected {expected[0]}, not {value!r}")
    return value


def _start(tables: Any) -> dict[str, Any]:
    """Tables to start from."""
    if not isinstance(tables, Mapping):
        raise ValueError(f"init: expected a dict with a table for each node, not {tables!r}")
    start = {}
    for node, table in tables.items():
        try:
            start[node] = np.atleast_2d(np.asarray(table, dtype=float)).tolist()
        except (TypeError, ValueError):
            raise ValueError(f"init: the table of {node!r} is no array of numbers with one row for each parent value") from None
    return start


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are(kind: Any) -> Any:
    return lambda value: isinstance(value, list) and all(kind(item) for item in value)


def _are_by_name(kind: Any) -> Any:
    return lambda value: isinstance(value, dict) and all(kind(item) for item in value.values())


_WHOLE = ("a whole number from 0 on", _is_count)
_TEXT = ("a text", _is_text)
_NAMES = ("a list of names", _are(_is_text))
_BOOL = ("True or False", lambda value: isinstance(value, bool))
_NUMBER = ("a positive number", _is_positive)
_SECONDS = ("positive seconds", _is_positive)
_NUMBERS = ("positive numbers", _are(_is_positive))

#: What each setting has to be, in words and as a check of it. What else there is to say of its value, the library says.
EXPECTED: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("particles", "runs", "rejuvenate", "cooling", "split_merge", "sweeps", "chains", "chain_sweeps"), _WHOLE),
    **dict.fromkeys(("n_init", "max_iter", "trials", "warm_up", "thin", "draws", "seed", "threads"), _WHOLE),
    **dict.fromkeys(("tokens", "batch", "window", "passes"), _WHOLE),
    **dict.fromkeys(("order", "resample", "path", "mode", "update", "moves", "kernel", "tied_prior", "model", "method"), _TEXT),
    **dict.fromkeys(("given", "maximise", "columns", "local"), _NAMES),
    **dict.fromkeys(("a", "shape", "b"), _NUMBER),
    **dict.fromkeys(("bracket", "bound"), _BOOL),
    **dict.fromkeys(("heat", "tol", "kappa", "tau"), ("a number", _is_number)),
    **dict.fromkeys(("a_values", "sensitivity"), _NUMBERS),
    "time_limit": _SECONDS,
    "checkpoint_every": ("seconds", lambda value: _is_number(value) and value >= 0),
    "totals": ("two whole numbers", lambda value: _are(_is_count)(value) and len(value) == 2),
    "ess": ('a share, "always" or "never"', lambda value: _is_number(value) or _is_text(value)),
    "prior": ('a dict or "none"', lambda value: isinstance(value, (dict, str))),
    "pseudo_count": ("a dict with a number for each node", _are_by_name(_is_number)),
}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(item) for item in value]
    return value


def number(value: Any) -> Any:
    """A number of a result; minus infinity is a string in JSON."""
    return -math.inf if value == "-inf" else value
