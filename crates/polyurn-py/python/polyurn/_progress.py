"""Progress of a run: a bar of tqdm where that is installed, else a line on a terminal, else nothing."""

from __future__ import annotations

import sys
import time
import warnings
from types import TracebackType
from typing import Any

# A run that is over by then needs no bar.
PATIENCE = 0.4
# Seconds from one look of a bar to the next: notebooks keep every one.
PAUSE = 0.1


class Progress:
    """Shows how far a run has come.

    Parameters
    ----------
    wanted : bool or None
        ``True`` for a bar, ``False`` for silence, ``None`` for a bar where somebody looks: a terminal or a notebook.
    """

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = _is_watched() if wanted is None else bool(wanted)
        self.started = time.monotonic()
        self.bar: Any = None
        self.shown = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    @property
    def watcher(self) -> Any:
        """What the library calls now and then with a stage and a share; none for silence."""
        return self._show if self.wanted else None

    def _show(self, stage: str, share: float) -> None:
        now = time.monotonic()
        if now - self.started < PATIENCE or now - self.shown < PAUSE:
            return
        self.shown = now
        if self.bar is None:
            self.bar = _bar()
        if self.bar.n > share or self.bar.desc != stage:
            self.bar.set_description_str(stage, refresh=False)
        self.bar.n = share
        self.bar.refresh()


def _is_watched() -> bool:
    in_notebook = "ipykernel" in sys.modules
    return in_notebook or bool(getattr(sys.stderr, "isatty", lambda: False)())


def _bar() -> Any:
    try:
        with warnings.catch_warnings():
            # Without the widgets of notebooks there is a bar of letters, which is no news to the user of a model.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return _Line()
    return tqdm(total=1.0, bar_format="{desc}: {percentage:3.0f}% |{bar}| {elapsed}", leave=False, file=sys.stderr)


class _Line:
    """The little of a bar that is needed, without tqdm."""

    def __init__(self) -> None:
        self.n = 0.0
        self.desc = ""

    def set_description_str(self, desc: str, refresh: bool = True) -> None:
        self.desc = desc

    def refresh(self) -> None:
        sys.stderr.write(f"\r{self.desc}: {100 * self.n:3.0f}% ")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r" + " " * (len(self.desc) + 8) + "\r")
        sys.stderr.flush()
