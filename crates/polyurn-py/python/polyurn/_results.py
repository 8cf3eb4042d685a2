"""Results: what was found, as numbers, tables, plots and pages."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from ._settings import number


class Shown:
    """What everything has that is found: dictionaries, JSON, a text for terminals and a table for notebooks."""

    def to_dict(self) -> Any:
        """Everything that was found, as plain lists and dictionaries."""
        raise NotImplementedError

    @property
    def json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict())

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        """Its table: the head, rows, and a caption."""
        raise NotImplementedError

    def __str__(self) -> str:
        head, rows, caption = self._rows()
        table = [head, *rows] if head[0] else rows
        widths = [max(len(row[ix]) for row in table) for ix in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join([caption, *lines] if caption else lines)

    def _repr_html_(self) -> str:
        return _table_html(*self._rows())


class Paged:
    """What can be shown as a page of its own."""

    def _page(self) -> tuple[str, str | None]:
        """Its JSON, and a heading where it is not the library's."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Report:
        """The page with all plots and tables; notebooks show it, and it is written to ``path`` if there is one."""
        found, heading = self._page()
        page = Report(_core.report(found, heading if title is None else title))
        if path is not None:
            page.save(path)
        return page


class _Result(Shown):
    """What results have that come from one run: the JSON of the command line, and warnings."""

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def to_dict(self) -> dict[str, Any]:
        """Everything that was found, by the names of the command line's ``--json``."""
        return json.loads(json.dumps(self._found))

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What is to be known, each with its ``kind`` and ``message``."""
        return self._found["warnings"]

    @property
    def seed(self) -> int:
        """The seed, given or drawn: giving it repeats the run."""
        return self._found["seed"]

    @property
    def seconds(self) -> float:
        """Time that it took."""
        return self._found["seconds"]

    def __getitem__(self, name: str) -> Any:
        return number(self._found[name])


class Report(str):
    """A page: text that notebooks show as the page that it is."""

    def _repr_html_(self) -> str:
        source = html.escape(self, quote=True)
        return f'<iframe srcdoc="{source}" style="width: 100%; height: 40em; border: none" sandbox="allow-scripts"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as out:
            out.write(self)


def _table_html(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: float | None, error: float | None) -> str:
    """A logarithm with as many digits as its error leaves."""
    if value is None:
        return ""
    if error is None or not 0 < error < float("inf"):
        return f"{value:.10f}"
    decimals = int(np.clip(1 - np.floor(np.log10(error)), 1, 10))
    return f"{value:.{decimals}f} +- {error:.{decimals}f}"


class Score(Paged, _Result):
    """The evidence of one model.

    Attributes
    ----------
    log_evidence : float
        ln p(data): exact, an estimate, or for ``method="vb"`` a lower bound, as ``bound`` says.
    std_error : float or None
        Its standard error; none where it is exact.
    bound : {"exact", "estimate", "lower", "bracket"}
        What the number is.
    log_p_total, log_arrangements, log_p_sequence : float
        Its three parts.
    """

    def __init__(self, found: dict[str, Any], text: str, model: str) -> None:
        super().__init__(found)
        self._text = text
        self.model = model

    @property
    def log_evidence(self) -> float:
        return self["log_marginal"]

    @property
    def std_error(self) -> float | None:
        return self["std_error"]

    @property
    def bound(self) -> str:
        return self["bound"]

    @property
    def method(self) -> str:
        return self["method"]

    @property
    def log_p_total(self) -> float:
        return self["log_p_total"]

    @property
    def log_arrangements(self) -> float:
        return self["log_arrangements"]

    @property
    def log_p_sequence(self) -> float:
        return self["log_p_sequence"]

    @property
    def bracket(self) -> tuple[float, float] | None:
        """A lower and an upper bound, if the engine gave both."""
        return (self["lower"], self["upper"]) if "lower" in self._found else None

    def _name(self) -> str:
        return "lower bound (ELBO)" if self.bound == "lower" else "ln evidence"

    def __repr__(self) -> str:
        shown = _shown(self.log_evidence, self.std_error)
        return f"<Score {self.model}: {self._name()} {shown}, {self.method}>"

    def __str__(self) -> str:
        return self._text

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        rows = [
            [self._name(), _shown(self.log_evidence, self.std_error)],
            ["total", _shown(self.log_p_total, self.std_error)],
            ["arrangements", _shown(self.log_arrangements, self.std_error)],
            ["sequence", _shown(self.log_p_sequence, self.std_error)],
            ["method", f"{self.method} ({self['why']})"],
        ]
        return ["", "value"], [row for row in rows if row[1]], self.model

    def to_pandas(self) -> Any:
        """A series of all numbers and words."""
        import pandas as pd

        plain = {name: number(value) for name, value in self._found.items() if not isinstance(value, (list, dict))}
        return pd.Series(plain, name=self.model)

    def plot(self, ax: Any = None) -> Any:
        """Estimates of the single runs, and their mean with its error. Needs matplotlib.

        Returns
        -------
        matplotlib axes
        """
        ax = _axes(ax)
        runs = [number(value) for value in self._found["run_log_marginals"]]
        ax.axhline(self.log_evidence, color="C0", label=self._name())
        if self.std_error:
            low, high = self.log_evidence - self.std_error, self.log_evidence + self.std_error
            ax.axhspan(low, high, color="C0", alpha=0.2, label="standard error")
        if runs:
            ax.plot(range(1, len(runs) + 1), runs, "o", color="C1", label="runs")
            ax.set_xlabel("run")
            _whole(ax)
        ax.set_ylabel("ln evidence")
        ax.legend()
        return ax

    def _page(self) -> tuple[str, str | None]:
        return _page_of([self]), self.model

    def to_inferencedata(self) -> Any:
        """The estimates of the runs as ArviZ wants them: runs are independent of each other, draws of one chain. Needs ArviZ."""
        import arviz as az

        runs = [number(value) for value in self._found["run_log_marginals"]] or [self.log_evidence]
        stats = {"log_evidence": np.array(runs)[None, :]}
        return az.from_dict({"sample_stats": stats}) if _is_new_arviz(az) else az.from_dict(sample_stats=stats)


class Curve(Paged, Shown):
    """The evidence of one model at several sizes of the prior; a sequence of :class:`Score`."""

    def __init__(self, scores: list[Score]) -> None:
        self.scores = scores

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, ix: int) -> Score:
        return self.scores[ix]

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    @property
    def best(self) -> Score:
        """The score with the largest evidence."""
        return max(self.scores, key=lambda score: score.log_evidence)

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What is to be known of each score, one after another."""
        return [one for score in self.scores for one in score.warnings]

    def _page(self) -> tuple[str, str | None]:
        best_first = sorted(self.scores, key=lambda score: -score.log_evidence)
        return _page_of(best_first), f"{self.scores[0].model} with priors of {len(self)} sizes"

    def to_dict(self) -> list[dict[str, Any]]:
        """What each score says."""
        return [score.to_dict() for score in self.scores]

    def to_pandas(self) -> Any:
        """A frame with one row for each value of ``a``."""
        import pandas as pd

        names = ["a", "log_marginal", "std_error", "log_p_total", "log_arrangements", "log_p_sequence", "method", "bound"]
        return pd.DataFrame([{name: score[name] for name in names} for score in self.scores])

    def plot(self, ax: Any = None) -> Any:
        """ln evidence against ``a``, on a logarithmic scale. Needs matplotlib."""
        ax = _axes(ax)
        a = [score["a"] for score in self.scores]
        errors = [score.std_error or 0.0 for score in self.scores]
        ax.errorbar(a, [score.log_evidence for score in self.scores], errors, marker="o")
        ax.set_xscale("log")
        ax.set_xlabel("a")
        ax.set_ylabel(self.scores[0]._name())
        return ax

    def __repr__(self) -> str:
        best = self.best
        return f"<Curve of {len(self)} values of a: largest {_shown(best.log_evidence, best.std_error)} at a = {best['a']:g}>"

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        rows = [[f"{one['a']:g}", _shown(one.log_evidence, one.std_error), one.method] for one in self.scores]
        return ["a", self.scores[0]._name(), "method"], rows, self.scores[0].model


class Ranking(Paged, _Result):
    """Models ranked by their evidence, best first.

    Attributes
    ----------
    models : list of dict
        One for each model, with the fields of a score and ``model``, ``sizes``, ``posterior_probability``,
        ``log_bayes_factor`` and their errors.
    best : dict
        ``model``, ``sizes`` and ``a`` of the best.
    verdict : str
        What it comes to, in a sentence.
    """

    def __init__(self, found: dict[str, Any], text: str) -> None:
        super().__init__(found)
        self._text = text

    @property
    def models(self) -> list[dict[str, Any]]:
        return self._found["models"]

    @property
    def best(self) -> dict[str, Any]:
        return self._found["best"]

    @property
    def verdict(self) -> str:
        return self._found["verdict"]

    @property
    def settled(self) -> bool:
        """Whether the errors leave no doubt about the best."""
        return self._found["settled"]

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before its time."""
        return self._found["interrupted"]

    @property
    def probabilities(self) -> np.ndarray:
        """Posterior probability of each model; NaN where no more than a bound is known."""
        return np.array([np.nan if p is None else p for p in self._column("posterior_probability")], dtype=float)

    def _column(self, name: str) -> list[Any]:
        return [number(model[name]) for model in self.models]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.models)

    def __getitem__(self, name: str | int) -> Any:
        """A field by its name, or a model by its place."""
        return self.models[name] if isinstance(name, int) else super().__getitem__(name)

    def __repr__(self) -> str:
        return f"<Ranking of {len(self.models)} model{'s' * (len(self.models) != 1)}: {self.verdict}>"

    def __str__(self) -> str:
        return self._text

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        rows = []
        for model in self.models:
            p = model["posterior_probability"]
            evidence = _shown(number(model["log_marginal"]), model["std_error"])
            factor = number(model["log_bayes_factor"])
            rows.append(
                [
                    model["model"],
                    (">= " if model["is_lower_bound"] else "") + evidence,
                    "" if factor is None else f"{factor:.2f}",
                    "" if p is None else f"{100 * p:.1f} %",
                    model["method"],
                ]
            )
        head = ["model", "ln evidence", "ln Bayes factor", "probability", "method"]
        return head, rows, self.verdict

    def to_pandas(self) -> Any:
        """A frame with one row for each model, best first."""
        import pandas as pd

        names = [
            *("log_marginal", "std_error", "bound", "elbo", "log_bayes_factor", "log_bayes_factor_error"),
            *("prior_probability", "posterior_probability", "posterior_probability_error"),
            *("is_lower_bound", "a", "method", "why", "seconds"),
        ]
        rows = [
            {"model": model["model"], **model["sizes"], **{name: number(model[name]) for name in names}}
            for model in self.models
        ]
        return pd.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """ln evidence with errors: against the size where one varies, else a row for each model. Needs matplotlib."""
        ax = _axes(ax)
        values = self._column("log_marginal")
        errors = [error or 0.0 for error in self._column("std_error")]
        sizes = [model["sizes"] for model in self.models]
        names = {name for size in sizes for name in size}
        varied = [name for name in names if len({size.get(name) for size in sizes}) > 1]
        if self._found["command"] == "select" and len(varied) == 1:
            name = varied[0]
            order = np.argsort([size[name] for size in sizes])
            x = [sizes[ix][name] for ix in order]
            ax.errorbar(x, [values[ix] for ix in order], [errors[ix] for ix in order], marker="o")
            ax.set_xlabel(name)
            ax.set_ylabel("ln evidence")
            _whole(ax)
        else:
            y = np.arange(len(values))
            ax.errorbar(values, y, xerr=errors, fmt="o")
            ax.set_yticks(y, [model["model"] for model in self.models])
            ax.invert_yaxis()
            ax.set_xlabel("ln evidence")
        return ax

    def _page(self) -> tuple[str, str | None]:
        return self.json, None


def _page_of(scores: Sequence[Score]) -> str:
    """Scores as the page takes them, which is made for models side by side."""
    return json.dumps({"command": "score", "models": [{**score.to_dict(), "model": score.model} for score in scores]})


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def _whole(ax: Any) -> None:
    """Marks nothing but whole numbers: there is no model with one and a half classes."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _is_new_arviz(az: Any) -> bool:
    """Whether groups come in one mapping, as from ArviZ 1 on."""
    return int(az.__version__.split(".")[0]) >= 1
