"""Fits: tables of a model, taken apart into arrays, frames and plots."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._results import Paged, _axes, _is_new_arviz, _Result
from ._settings import number

if TYPE_CHECKING:
    from ._predictions import Prediction


class Fit(Paged, _Result):
    """Tables of one model, fitted to data.

    Attributes
    ----------
    objective : float
        What the engine maximised or estimated: the lower bound for ``"vb"``, the likelihood for ``"em"`` without a prior.
    log_evidence : float or None
        ln p(data), for engines that give it.
    kl_divergence : float or None
        Distance of the expected counts from the data.
    nodes : list of dict
        Name, size, parents of each node, and whether it is seen.
    """

    def __init__(self, core: _core.Fit, found: dict[str, Any]) -> None:
        super().__init__(found)
        self._core = core

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Fit:
        """Reads a fit file, of :meth:`save` or of the command line's ``fit -o``."""
        return cls._of(_core.Fit.read(os.fspath(path)))

    @classmethod
    def _of(cls, core: _core.Fit) -> Fit:
        found = json.loads(core.json())
        found.pop("tables", None)
        return cls(core, {"seconds": None, **found})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a fit file, which the command line reads too."""
        with open(path, "wb") as out:
            out.write(self._core.to_bytes())

    @property
    def method(self) -> str:
        return self["method"]

    @property
    def objective(self) -> float:
        return self["objective"]

    @property
    def objective_trace(self) -> list[float]:
        """The objective after each sweep."""
        return [number(value) for value in self._found["objective_trace"]]

    @property
    def log_evidence(self) -> float | None:
        return self["log_marginal"] if self.method in ("exact", "smc") else None

    @property
    def kl_divergence(self) -> float | None:
        return self["kl_divergence"]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return [dict(zip(("name", "size", "seen", "parents"), node)) for node in self._core.nodes]

    def labels(self, node: str) -> list[str]:
        """What the values of a node are called."""
        names, first = self._core.labels(node)
        if names is not None:
            return names
        size = next(one["size"] for one in self.nodes if one["name"] == node)
        return [str(first + value) for value in range(size)]

    def table(self, node: str, *, draw: str | int | None = None) -> np.ndarray:
        """Probabilities of a node's values: the last axis; the axes before it are its parents."""
        _, sizes, cells = self._core.table(node, draw)
        return cells.reshape(sizes)

    def marginal(self, nodes: Sequence[str], *, draw: str | int | None = None) -> np.ndarray:
        """Joint probabilities of some nodes, all others summed out."""
        _, sizes, cells = self._core.marginal(list(nodes), draw)
        return cells.reshape(sizes)

    def factors(self, *, draw: str | int | None = None) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """The core, and for each seen node its probabilities given the hidden nodes that it depends on.

        Particles and chains name hidden values differently in each run, so without ``draw`` theirs come from the best
        allocation.
        """
        if draw is None and self._core.draws[0]:
            draw = "best"
        _, core, matrices = self._core.factors(draw)
        by_node = {names[-1]: cells.reshape(sizes) for names, sizes, cells in matrices}
        return None if core is None else core[2].reshape(core[1]), by_node

    def predict(
        self,
        X: Any,
        *,
        impute: bool = False,
        draw: str | int | None = None,
        handle_unknown: str = "error",
        n_jobs: int | None = None,
    ) -> Prediction:
        """Applies the fit to new records: ln probabilities, hidden values, missing values.

        The numbers are those of the command line's ``predict``. New values of a seen root node with hidden children (new documents)
        get rows of their own, inferred from their records.

        Parameters
        ----------
        X : frame, Arrow table, mapping of columns, or two-dimensional array
            Columns named after nodes; those of an array are the seen nodes in their order. ``count`` says how much a row tells about a new
            document.
        impute : bool, default False
            Whether to give probabilities of seen nodes too, where a row does not show them.
        draw : "best" or int, optional
            Tables of the best allocation, or of one draw, for fits by ``"smc"`` and ``"gibbs"``.
        handle_unknown : {"error", "missing"}, default "error"
            What to do with a value that the fit does not know, and that cannot be new.
        n_jobs : int, optional
            Threads; all cores without it.

        Returns
        -------
        Prediction

        Examples
        --------
        >>> table = {"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]}
        >>> fit = polyurn.fit("class[2] -> a b", table, random_state=1)
        >>> fit.predict({"a": ["x"], "b": [None]}, impute=True).most_likely("b")[0]
        ['u']
        """
        from ._predictions import predict

        return predict(self, X, impute, draw, handle_unknown, n_jobs)

    def _page(self) -> tuple[str, str | None]:
        return self._core.json(), None

    def to_pandas(self, node: str | None = None) -> Any:
        """The table of a node as a frame, or one series of all tables."""
        import pandas as pd

        nodes = [node] if node is not None else [group[0] for group in self._core.tables]
        series = []
        for name in nodes:
            table = self.table(name)
            parents = next(one["parents"] for one in self.nodes if one["name"] == name)
            index = pd.MultiIndex.from_product([self.labels(one) for one in [*parents, name]], names=[*parents, name])
            series.append(pd.Series(table.ravel(), index=index, name=f"p({name})"))
        if node is not None:
            return series[0].unstack(-1) if series[0].index.nlevels > 1 else series[0]
        # Tables have different parents, so their rows are told apart by one text each.
        flat = [one.set_axis([_row_name(one.index.names, key) for key in one.index]) for one in series]
        return pd.concat(flat, keys=nodes, names=["node", "row"]).rename("probability")

    def plot(self, ax: Any = None) -> Any:
        """The objective sweep by sweep, of engines that sweep. Needs matplotlib."""
        if self.method in ("exact", "smc"):
            raise ValueError(f'a fit by "{self.method}" has no sweeps to plot; report() has its tables as pictures')
        ax, trace = _axes(ax), self.objective_trace
        ax.plot(range(1, len(trace) + 1), trace)
        ax.set_xlabel("sweep")
        ax.set_ylabel("objective")
        return ax

    def to_inferencedata(self) -> Any:
        """Draws of the tables as ArviZ wants them. Needs ArviZ, and ``draws``.

        Draws by ``"gibbs"`` keep their chains, as many of each as all have; those by ``"smc"`` are independent of each other, and one
        chain. Chains name hidden values as they like: ``r_hat`` of a table means little where names can be exchanged.
        """
        import arviz as az

        n_draws = self._core.draws[1]
        if n_draws == 0:
            raise ValueError('this fit holds no draws; fit with method="smc" or "gibbs" and draws=100')
        chains = self._chains(n_draws)
        posterior, dims, coords = {}, {}, {}
        for group in self._core.tables:
            name = group[0]
            posterior[name] = np.stack([[self.table(name, draw=ix) for ix in chain] for chain in chains])
            parents = next(one["parents"] for one in self.nodes if one["name"] == name)
            dims[name] = [f"{node}_value" for node in [*parents, name]]
            coords.update({f"{node}_value": self.labels(node) for node in [*parents, name]})
        if _is_new_arviz(az):
            return az.from_dict({"posterior": posterior}, dims=dims, coords=coords)
        return az.from_dict(posterior=posterior, dims=dims, coords=coords)

    def _chains(self, n_draws: int) -> list[list[int]]:
        """Numbers of the draws of each chain, as many of each."""
        runs = self._found.get("draw_runs") if self.method == "gibbs" else None
        if runs is None:
            return [list(range(n_draws))]
        chains = [[ix for ix, run in enumerate(runs) if run == chain] for chain in sorted(set(runs))]
        n_each = min(map(len, chains))
        return [chain[:n_each] for chain in chains]

    def __repr__(self) -> str:
        hidden = ", ".join(f"{one['name']}[{one['size']}]" for one in self.nodes if not one["seen"])
        return f"<Fit by {self.method}, hidden {hidden or 'nothing'}: objective {self.objective:.6g}>"

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        rows = [
            ["model", self._found["model"]],
            ["method", self.method],
            ["objective", f"{self.objective:.6g}"],
            ["KL divergence", "" if self.kl_divergence is None else f"{self.kl_divergence:.6g}"],
            ["converged", str(self._found.get("converged"))],
        ]
        return ["", "value"], [row for row in rows if row[1]], "fit"

    def __getstate__(self) -> dict[str, Any]:
        return {"core": self._core, "found": self._found}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._core, self._found = state["core"], state["found"]


def _row_name(names: Sequence[str], key: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, key if isinstance(key, tuple) else (key,)))
