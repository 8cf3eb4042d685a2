"""Models from graphs that other tools have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["from_edges", "from_pgmpy"]


def from_edges(
    edges: Iterable[tuple[str, str]],
    *,
    nodes: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    tied: Iterable[Sequence[str]] = (),
) -> str:
    """Model text from a list of edges, parent first.

    Parameters
    ----------
    edges : iterable of (str, str)
        Parent and child.
    nodes : iterable of str, optional
        Further nodes, without edges.
    sizes : mapping, optional
        Number of values, for hidden nodes and wherever it is to be declared.
    tied : iterable of sequences of str, optional
        Nodes that share a table.

    Returns
    -------
    str

    Examples
    --------
    >>> polyurn.models.from_edges([("class", "hair"), ("class", "eye colour")], sizes={"class": 2})
    'class[2]; hair; "eye colour"; class -> hair; class -> "eye colour"'
    """
    edges = [_edge(edge) for edge in edges]
    # Names may be any objects, and are known by their text.
    sizes = {str(name): size for name, size in (sizes or {}).items()}
    names = dict.fromkeys([name for edge in edges for name in edge])
    names.update(dict.fromkeys(str(name) for name in nodes))
    unknown = [name for name in sizes if name not in names]
    if unknown:
        raise ValueError(f"sizes: {unknown[0]!r} is no node; there are {', '.join(names)}")
    declared = [_quote(name) + (f"[{sizes[name]}]" if name in sizes else "") for name in names]
    arrows = [f"{_quote(parent)} -> {_quote(child)}" for parent, child in edges]
    ties = [" ~ ".join(_quote(str(name)) for name in group) for group in tied]
    return "; ".join([*declared, *arrows, *ties])


def from_pgmpy(network: Any, *, sizes: Mapping[str, int] | None = None) -> str:
    """Model text of a pgmpy network; its latent nodes are hidden, and need sizes unless the network has tables for them.

    Parameters
    ----------
    network : pgmpy DAG or Bayesian network
        Nodes, edges, and if there are any, latent nodes and their tables.
    sizes : mapping, optional
        Sizes of nodes, over those of the tables.

    Returns
    -------
    str
    """
    known = dict(sizes or {})
    latents = {str(node) for node in getattr(network, "latents", ())}
    for table in getattr(network, "cpds", ()):
        if str(table.variable) in latents:
            known.setdefault(str(table.variable), int(table.variable_card))
    without = [node for node in latents if node not in known]
    if without:
        raise ValueError(f"sizes: latent node {without[0]!r} needs a size")
    return from_edges(network.edges(), nodes=map(str, network.nodes()), sizes=known)


def _edge(edge: Any) -> tuple[str, str]:
    # A text of two letters could be taken apart, too.
    if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise ValueError(f"edges: expected pairs of a parent and a child, not {edge!r}")
    parent, child = edge
    return str(parent), str(child)


def _quote(name: str) -> str:
    is_plain = name != "" and all(c.isalnum() or c in "_." for c in name)
    return name if is_plain else '"' + name.replace('"', '""') + '"'
