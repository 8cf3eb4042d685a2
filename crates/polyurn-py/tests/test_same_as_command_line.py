"""The same seed gives the same numbers as the command line."""

import csv

import numpy as np
import polyurn
import pytest


@pytest.fixture
def csv_file(tmp_path, survey):
    path = tmp_path / "survey.csv"
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(survey)
        writer.writerows(zip(*survey.values()))
    return path


def without_time(found):
    """What does not depend on the clock or on how data are called."""
    drop = {"seconds", "command_line", "data", "tokens_per_second"}
    if isinstance(found, dict):
        return {name: without_time(value) for name, value in found.items() if name not in drop}
    return [without_time(value) for value in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"method": "exact"}, ["--method", "exact"]),
        ({"method": "smc", "particles": 64, "runs": 3}, ["--method", "smc", "--particles", 64, "--runs", 3]),
        ({"method": "vb", "n_init": 2}, ["--method", "vb", "--restarts", 2]),
        ({"method": "anneal", "sweeps": 50, "bracket": True}, ["--method", "anneal", "--sweeps", 50, "--bracket"]),
        ({"a": 0.3, "pseudo_count": {"a": 0.5}, "b": 0.1}, ["--a", 0.3, "--pseudo-count", "a=0.5", "--b", 0.1]),
    ],
)
@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_scores_are_the_same(command, csv_file, survey, settings, flags):
    model = "class[2] -> a" if settings.get("method") == "exact" else "class[2] -> a b c"
    table = {"a": survey["a"]} if settings.get("method") == "exact" else survey
    if settings.get("method") == "exact":
        csv_file.write_text("a\n" + "\n".join(survey["a"]) + "\n")
    theirs = command("score", "--model", model, "--data", csv_file, "--seed", 9, *flags)
    ours = polyurn.score(model, table, random_state=9, **settings)
    assert without_time(ours.to_dict()) == without_time(theirs)
    from_file = polyurn.score(model, csv_file, random_state=9, n_jobs=1, **settings)
    assert without_time(from_file.to_dict()) == without_time(theirs)


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_rankings_are_the_same(command, csv_file, survey):
    survey = {name: column[:30] for name, column in survey.items()}
    csv_file.write_text("\n".join(csv_file.read_text().splitlines()[:31]) + "\n")
    theirs = command("select", "--model", "lca(1..3)", "--data", csv_file, "--seed", 4)
    ours = polyurn.select("lca(1..3)", survey, random_state=4)
    assert without_time(ours.to_dict()) == without_time(theirs)
    models = ["class[2] -> a b c", "independent", "a -> b -> c"]
    flags = [word for model in models for word in ("--model", model)]
    theirs = command("compare", *flags, "--data", csv_file, "--seed", 4)
    assert without_time(polyurn.compare(models, survey, random_state=4).to_dict()) == without_time(theirs)


@pytest.mark.parametrize("method", ["vb", "em", "gibbs", "smc"])
@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_fits_are_the_same(command, csv_file, survey, method):
    model = "class[2] -> a b c"
    theirs = command("fit", "--model", model, "--data", csv_file, "--seed", 4, "--method", method)
    ours = polyurn.fit(model, survey, random_state=4, method=method)
    tables = theirs.pop("tables")
    assert without_time(ours.to_dict()) == without_time(theirs)
    for table in tables:
        rows = np.array([row["mean"] for row in table["rows"]])
        assert np.array_equal(ours.table(table["node"]).reshape(rows.shape), rows)


def test_simulated_data_are_the_same(command, tmp_path):
    theirs = command("simulate", "--model", "r[3] -> i[4] j[5]", "--seen", "i,j", "--tokens", 200, "--seed", 2, "--a", 5)
    ours = polyurn.simulate("r[3] -> i[4] j[5]", 200, seen=["i", "j"], random_state=2, a=5)
    coords, counts, shape = ours.to_coo()
    rows = [{"values": [str(v) for v in values], "count": int(n)} for values, n in zip(coords.T, counts)]
    assert rows == theirs["rows"]
    assert shape == (4, 5)


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_held_out_scores_are_the_same(command, tmp_path, matrix):
    train, test = matrix[:8], matrix[8:]
    for name, part, first in [("train", train, 0), ("test", test, 8)]:
        with open(tmp_path / f"{name}.csv", "w") as out:
            out.write("doc,word,count\n")
            # A word that never occurs would have no value in a file; zeros declare it.
            for (doc, word), count in np.ndenumerate(part):
                if count or (name == "train" and doc == 0):
                    out.write(f"d{doc + first},{word},{count}\n")
    theirs = command(
        *("score", "--model", "doc -> topic[2] -> word", "--data", tmp_path / "train.csv"),
        *("--heldout", tmp_path / "test.csv", "--method", "vb", "--seed", 1),
    )
    model = polyurn.AllocationModel("doc -> topic[2] -> word", random_state=1).fit(train)
    # Labels of documents differ, and with them the order of sums.
    assert model.score(test) == pytest.approx(theirs["log_probability_per_token"], rel=1e-9)


def test_fit_files_go_both_ways(command, csv_file, survey, tmp_path):
    fit = polyurn.fit("class[2] -> a b c", survey, random_state=1)
    fit.save(tmp_path / "ours.polyurn")
    assert command("info", tmp_path / "ours.polyurn")["method"] == "vb"
    command("fit", "--model", "class[2] -> a b c", "--data", csv_file, "--seed", 1, "-o", tmp_path / "theirs.polyurn")
    theirs = polyurn.Fit.read(tmp_path / "theirs.polyurn")
    assert np.array_equal(theirs.table("a"), fit.table("a"))
