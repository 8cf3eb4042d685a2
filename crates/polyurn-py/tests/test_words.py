"""Texts of the library name parameters of Python, not flags of the command line."""

import re
from pathlib import Path

import numpy as np
import polyurn
import pytest
from polyurn._core import in_python

SOURCES = Path(__file__).parents[3] / "crates" / "polyurn" / "src"
# Colours of pages and command lines that reports show have hyphens of their own.
OTHERS = ("report/colour.rs", "report/drawing.rs", "report/page.rs", "report/text.rs")


def texts():
    """Lines of the library's sources with a flag in them, but for comments and tests."""
    for path in sorted(SOURCES.rglob("*.rs")):
        if path.relative_to(SOURCES).as_posix() in OTHERS:
            continue
        for number, line in enumerate(path.read_text().split("mod tests {")[0].splitlines(), 1):
            # What a build is told is no flag of ours.
            code = re.split(r"(?<!:)//", line)[0].replace("--features parquet", "")
            if re.search(r"(?<![\w-])--[a-z]", code):
                yield f"{path.name}:{number}", code.strip()


def test_every_flag_in_a_text_of_the_library_has_a_name_in_python():
    found = dict(texts())
    assert len(found) > 80
    left = {place: in_python(text) for place, text in found.items()}
    assert not [(place, text) for place, text in left.items() if re.search(r"(?<![\w-])--[a-z]", text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("give --b", "give b"),
        ("use --method vb, a lower bound", 'use method="vb", a lower bound'),
        ("fit with --method smc, gibbs, vb or em", 'fit with method="smc", "gibbs", "vb" or "em"'),
        ("(--method vb and em take fractions)", '(method="vb" and "em" take fractions)'),
        ("raise --max-memory 8G, or use fewer tokens", 'raise max_memory="8G", or use fewer tokens'),
        ("raise --max-memory, or give fewer --particles", "raise max_memory, or give fewer particles"),
        ("--order by:doc: no record shows this node", 'order="by:doc": no record shows this node'),
        ("--order sideways: expected auto", 'order="sideways": expected auto'),
        ("another model or --order; repeat", "another model or order; repeat"),
        ("try --path prior or --method smc", 'try path="prior" or method="smc"'),
        ("--runs 4 or more", "runs=4 or more"),
        ("take --restarts to search longer", "take n_init to search longer"),
        ("give --totals LO..HI (at most a million)", "give totals=(LO, HI) (at most a million)"),
        ("--totals 3..9: totals start at 4", "totals=(3, 9): totals start at 4"),
        ("with --sensitivity 0.25,4.", "with sensitivity=[0.25, 4]."),
        ("--given doc: the node has parents", 'given=["doc"]: the node has parents'),
        ("--columns names `i` twice", "columns names `i` twice"),
        ("give one, or --local none", "give one, or local=[]"),
        ("--draw best, or fit with --draws N to keep more", 'draw="best", or fit with draws=N to keep more'),
        ("a range such as 1--a, or e--b", "a range such as 1--a, or e--b"),
        ("--unheard of", "--unheard of"),
    ],
)
def test_flags_become_parameters_with_their_values(text, expected):
    assert in_python(text) == expected


def test_errors_warnings_and_pages_have_the_names_of_python():
    X = np.random.default_rng(0).poisson(3, size=(12, 12))
    with pytest.raises(ValueError, match="give b") as caught:
        polyurn.score("i -> k[2] -> j", [[3.0, np.nan]])
    assert "--" not in str(caught.value)
    with pytest.raises(polyurn.TooCostlyError, match="max_memory") as caught:
        polyurn.score("lda(8)", X, method="smc", particles=10**6, max_memory="1M")
    assert "--" not in str(caught.value)
    with pytest.warns(polyurn.NotConvergedWarning, match="max_iter") as said:
        fit = polyurn.fit("lda(4)", X, max_iter=3, random_state=1, n_init=1)
    assert not [one for one in said if "--" in str(one.message)]
    assert not [one for one in fit.warnings if "--" in one["message"]]
    with pytest.raises(ValueError, match="^heat=0.5: expected a factor from 1"):
        polyurn.score("lda(2)", X, method="smc", heat=0.5)
    with pytest.raises(ValueError, match="^cooling: there is nothing to cool without heat above 1"):
        polyurn.score("lda(2)", X, method="smc", heat=1, cooling=3)
    with pytest.raises(ValueError, match="^bins: "):
        polyurn.read(__file__, bins="height")
    with pytest.raises(ValueError, match='^order="sideways": expected'):
        polyurn.score("lda(2)", X, method="smc", order="sideways")


def test_every_warning_of_the_library_has_a_class():
    kinds = (SOURCES / "warning.rs").read_text().split("pub enum Warning {")[1].split("\n}\n")[0]
    names = [re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in re.findall(r"^    ([A-Z]\w+)(?: \{|,)", kinds, re.MULTILINE)]
    assert len(names) > 30 and set(names) == set(polyurn._warnings._CLASSES)
