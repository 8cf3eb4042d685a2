"""Pages about the package say what is so: the reference is up to date, and snippets run."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polyurn
import pytest
from pgmpy.models import DiscreteBayesianNetwork

ROOT = Path(__file__).parents[3]


def test_the_reference_is_up_to_date():
    page = runpy.run_path(str(ROOT / "scripts" / "python-api"))["page"]()
    assert page == (ROOT / "docs" / "python-api.md").read_text(), "run scripts/python-api"


def blocks(page):
    """Fenced blocks of Python in a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def sections(page):
    """Code in the right-hand columns of a page's tables, by the heading above."""
    found, heading = {}, ""
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and line.count("|") >= 3:
            found.setdefault(heading, []).extend(re.findall(r"`([^`]+)`", line.split("|")[2]))
    return found


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_blocks_of_python_run(page, tmp_path, monkeypatch, survey):
    monkeypatch.chdir(tmp_path)
    # So few that the evidence takes no time.
    names = {"frame": pd.DataFrame(survey)[:12], "X": np.array([[2, 1, 1, 0], [0, 0, 1, 2], [0, 0, 1, 1]])}
    found = blocks(page)
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


def given(section):
    """What a section of the page for newcomers takes as given: so few tokens that rankings take no time."""
    matrix = np.array([[2, 1, 0], [0, 1, 2]])
    names = {"pn": polyurn, "np": np, "X": matrix}
    if section == "scikit-learn":
        names |= {"lda": polyurn.LDA(2, random_state=1).fit(matrix), "X_test": matrix}
    elif section in ("StepMix", "poLCA"):
        names["X"] = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, np.nan, 0]])
        names["frame"] = pd.DataFrame(names["X"], columns=list("ABC"))
    elif section == "pyttb":
        names["X"] = np.array([[[1, 0], [0, 2]], [[0, 1], [1, 0]]])
        names["cp"] = polyurn.CP(2, random_state=1).fit(names["X"])
    elif section == "pgmpy":
        data = pd.DataFrame({"x": [0, 0, 1, 1], "y": [0, 0, 1, 0], "z": [1, 0, 1, 1]})
        names |= {"data": data, "network": DiscreteBayesianNetwork([("x", "y"), ("y", "z")])}
        names["fit"] = polyurn.fit("x -> y -> z", data, method="exact")
    return names


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_what_newcomers_write_runs():
    """Expressions that begin with one of the names that the page explains; an estimator that is not fitted is fitted."""
    n_run = 0
    for section, found in sections("docs/coming-from.md").items():
        names = given(section)
        for code in found:
            begin = re.match(r"(\w+)[.\[]", code)
            if begin and begin[1] in names:
                result = eval(compile(code, f"coming-from.md, {section}", "eval"), names)
                if hasattr(result, "get_params") and not hasattr(result, "fit_"):
                    result.set_params(max_iter=None if result.method == "gibbs" else 20).fit(names["X"])
                n_run += 1
    assert n_run >= 20
