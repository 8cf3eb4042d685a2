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


def seed_of(random_state: Any, checkpoint: Any = None) -> int:
    """The seed that a ``random_state`` stands for: an integer is the seed itself, as on the command line.

    Without one it is that of the run whose state is in ``checkpoint``, if there is such a file.
    """
    if random_state is None:
        begun = None if checkpoint is None else _core.checkpoint_seed(os.fspath(checkpoint))
        return secrets.randbits(53) if begun is None else begun
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state: a seed is not negative, but this is {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**53))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    raise ValueError(f"random_state: expected an integer, a generator of NumPy or None, not {random_state!r}")


def threads_of(n_jobs: int | None, default: int | None = None) -> int:
    """Threads; negative numbers count back from all cores, as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        return default or cores
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; give a number of threads, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def bytes_of(max_memory: int | float | str | None) -> int | None:
    """``4e9``, ``"4G"`` or ``"500MiB"``."""
    if max_memory is None or not isinstance(max_memory, str):
        return None if max_memory is None else int(max_memory)
    units = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
    text = max_memory.strip().lower().removesuffix("b")
    number = text.rstrip("kmgti")
    try:
        return int(float(number) * units[text[len(number) :]])
    except (KeyError, ValueError):
        raise ValueError(f"max_memory: {max_memory!r} is no amount of memory; write 4G or 500M") from None


def request(**settings: Any) -> str:
    """The settings that were given, as JSON."""
    given = {}
    for name, value in settings.items():
        if value is None:
            continue
        if name == "time_limit":
            value = float(value)
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"time_limit: expected positive seconds, not {value}")
        elif name == "checkpoint":
            value = os.fspath(value)
        elif name == "checkpoint_every":
            value = float(value)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"checkpoint_every: expected seconds, not {value}")
        elif name == "max_memory":
            value = bytes_of(value)
        elif name == "init":
            value = {"tables": {node: np.atleast_2d(table).tolist() for node, table in value.items()}}
        elif name == "maximise" and isinstance(value, str):
            value = [value]
        elif name == "given" and isinstance(value, str):
            value = [value]
        given[name] = _plain(value)
    return json.dumps(given)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def number(value: Any) -> Any:
    """A number of a result; minus infinity is a string in JSON."""
    return -math.inf if value == "-inf" else value
