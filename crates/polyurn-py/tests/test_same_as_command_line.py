"""The same seed gives the same numbers as the command line."""

import csv
import json
import os
import signal
import subprocess
import time

import numpy as np
import polyurn
import pytest
from polyurn._core import in_python


@pytest.fixture
def csv_file(tmp_path, survey):
    path = tmp_path / "survey.csv"
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(survey)
        writer.writerows(zip(*survey.values()))
    return path


def without_time(found):
    """What does not depend on the clock or on how data are called; sentences name parameters, not flags."""
    drop = {"seconds", "command_line", "data", "tokens_per_second"}
    if isinstance(found, dict):
        plain = {name: without_time(value) for name, value in found.items() if name not in drop}
        return plain | {name: in_python(plain[name]) for name in ("message", "verdict", "movement") if isinstance(plain.get(name), str)}
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


def lines_of(program, *words):
    """What `predict` prints: one JSON object for each row."""
    done = subprocess.run([program, *map(str, words), "--json", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_same_lines(ours, theirs, fit, imputes):
    assert len(ours) == len(theirs)
    for row, line in enumerate(theirs):
        if line["log_probability"] is None:
            assert np.isnan(ours.log_probability[row])
        else:
            assert ours.log_probability[row] == line["log_probability"]
            assert ours.expected_count[row] == pytest.approx(line["expected_count"], rel=1e-12)
        if "log_probability_given" in line:
            assert ours.log_probability_given[row] == line["log_probability_given"]
        found = {**line["hidden"], **(line["imputed"] if imputes else {})}
        assert set(found) == set(ours.probabilities)
        for node, said in found.items():
            labels, probability = ours.most_likely(node)
            assert (labels[row], probability[row]) == (said["value"], said["probability"])
            if "probabilities" in said:
                assert ours.probabilities[node][row].tolist() == said["probabilities"]


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_predictions_are_the_same(survey, tmp_path):
    program = os.environ["POLYURN"]
    fit = polyurn.fit("class[2] -> a b c", survey, random_state=4)
    fit.save(tmp_path / "fit.polyurn")
    new = {"a": ["yes", "no", None, "no"], "b": ["no", None, None, "yes"], "c": ["yes", "yes", "no", None]}
    with open(tmp_path / "new.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(new)
        writer.writerows(zip(*new.values()))
    flags = ["--probabilities", "--impute", "--expected"]
    theirs = lines_of(program, "predict", "--fit", tmp_path / "fit.polyurn", "--data", tmp_path / "new.csv", *flags)
    assert_same_lines(fit.predict(new, impute=True), theirs, fit, True)
    as_array = np.array([[None if cell is None else cell for cell in row] for row in zip(*new.values())], dtype=object)
    np.testing.assert_array_equal(fit.predict(as_array).log_probability, fit.predict(new).log_probability)
    unknown = {"a": ["yes", "maybe"], "b": ["no", "no"]}
    with pytest.raises(ValueError, match="value `maybe` of `a`"):
        fit.predict(unknown)
    dropped = fit.predict(unknown, handle_unknown="missing")
    assert dropped.log_probability[1] == fit.predict({"b": ["no"]}).log_probability[0]
    with pytest.raises(ValueError, match="no column is named"):
        fit.predict({"z": ["no"]})


def test_numbers_that_were_cut_are_predicted_the_same(tmp_path):
    """Cuts of a fit made here are known to the command line, and the other way round."""
    people, ours, theirs = (tmp_path / name for name in ("people.csv", "ours.polyurn", "theirs.polyurn"))
    people.write_text("height,hair\n" + "".join(f"{n / 2},{'fair' if n < 5 else 'dark'}\n" for n in range(10)))
    fit = polyurn.fit("height -> hair", polyurn.read(people, bins="height=2:width"), method="exact")
    fit.save(ours)
    program = os.environ["POLYURN"]
    words = ["--model", "height -> hair", "--data", people, "--bin", "height=2:width", "--method", "exact", "-q", "-o", theirs]
    subprocess.run([program, "fit", *map(str, words)], check=True, capture_output=True)
    new = {"height": [0.25, 9, None], "hair": ["fair", None, "dark"]}
    (tmp_path / "new.csv").write_text("height,hair\n0.25,fair\n9,\n,dark\n")
    flags = ["--data", tmp_path / "new.csv", "--probabilities", "--expected"]
    found = [lines_of(program, "predict", "--fit", one, *flags) for one in (ours, theirs)]
    assert found[0] == found[1]
    for one in (fit, polyurn.Fit.read(theirs)):
        assert_same_lines(one.predict(new), found[0], one, False)


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_new_documents_are_the_same(matrix, tmp_path):
    program = os.environ["POLYURN"]
    docs, words = np.nonzero(matrix[:8])
    table = {"doc": [f"d{doc}" for doc in docs], "word": [f"w{word}" for word in words], "count": matrix[docs, words]}
    fit = polyurn.fit("doc -> topic[2] -> word", table, random_state=4)
    fit.save(tmp_path / "fit.polyurn")
    # Known documents between new ones, one without a document, and one that shows nothing else.
    new = {
        "doc": ["n2", "d3", "n1", "n2", None, "n1", "d0", "n2"],
        "word": ["w0", "w1", "w3", "w2", "w1", "w3", "w4", None],
        "count": [3, 1, 2, 1, 1, 5, 2, 1],
    }
    with open(tmp_path / "new.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(new)
        writer.writerows(zip(*new.values()))
    flags = ["--probabilities", "--expected"]
    theirs = lines_of(program, "predict", "--fit", tmp_path / "fit.polyurn", "--data", tmp_path / "new.csv", *flags)
    ours = fit.predict(new)
    assert_same_lines(ours, theirs, fit, False)
    assert ours.new_values == ["n2", "n1"] and ours.new_rows["topic"].shape == (2, 2)
    assert list(ours.to_pandas().columns) == ["log_probability", "log_probability_given", "topic", "topic:p"]


def test_tokens_of_a_table_are_the_same(command, csv_file, survey):
    theirs = command("simulate", "--from", csv_file, "--tokens", 500, "--seed", 3)
    ours = polyurn.simulate(table=survey, tokens=500, random_state=3)
    coords, counts, _ = ours.to_coo()
    labels = [ours.labels(ix) for ix in range(3)]
    rows = [{"values": [own[v] for own, v in zip(labels, values)], "count": int(n)} for values, n in zip(coords.T, counts)]
    assert rows == theirs["rows"]
    with pytest.raises(ValueError, match="a: tokens are drawn from a table"):
        polyurn.simulate(table=survey, tokens=5, a=2)
    with pytest.raises(ValueError, match="count is unknown"):
        polyurn.simulate(table=[[1.0, np.nan]], tokens=5)


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_a_run_goes_on_from_its_checkpoint(csv_file, survey, tmp_path):
    """Stopped by the command line, taken up by Python: the answer of a run that nobody stopped, and its seed."""
    path, model = tmp_path / "state", "class[2] -> a b c"
    settings = {"method": "smc", "particles": 400, "runs": 60, "rejuvenate": 20}
    flags = ["--method", "smc", "--particles", 400, "--runs", 60, "--rejuvenate", 20]
    words = ["score", "--model", model, "--data", csv_file, "--seed", 11, *flags, "--threads", 1]
    child = subprocess.Popen(
        [os.environ["POLYURN"], *map(str, words), "--checkpoint", path, "--checkpoint-every", "0.01s"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    while not path.exists():
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130 and path.exists()
    with pytest.raises(ValueError, match="another"):
        polyurn.score("class[3] -> a b c", survey, checkpoint=path, **settings)
    found = polyurn.score(model, survey, checkpoint=path, checkpoint_every=0.01, **settings)
    whole = polyurn.score(model, survey, random_state=11, **settings)
    assert without_time(found.to_dict()) == without_time(whole.to_dict())
    assert found.seed == 11 and not path.exists()


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_checkpoints_of_all_functions_go_when_they_are_done(survey, tmp_path):
    path, model = tmp_path / "state", "class[2] -> a b c"
    few = {name: column[:10] for name, column in survey.items()}
    polyurn.select("lca(1..2)", few, random_state=1, checkpoint=path, checkpoint_every=0)
    assert not path.exists()
    fit = polyurn.fit(model, survey, random_state=1, method="gibbs", sweeps=50, checkpoint=path, checkpoint_every=0)
    assert not path.exists() and "checkpoint" not in fit._core.settings
    same = polyurn.fit(model, survey, random_state=1, method="gibbs", sweeps=50)
    assert np.array_equal(fit.table("a"), same.table("a"))
    with pytest.raises(ValueError, match="a curve has none"):
        polyurn.score(model, few, a=[1, 2], checkpoint=path)
    with pytest.raises(ValueError, match="there is no checkpoint"):
        polyurn.score(model, few, checkpoint_every=1)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no checkpoint"):
        polyurn.score(model, few, random_state=1, method="smc", checkpoint=path)


@pytest.mark.parametrize("method", ["vb", "smc"])
@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_held_out_records_are_scored_as_by_the_command_line(command, matrix, survey, tmp_path, method):
    """Known and new documents, one without a document, one without a word; and records without documents."""
    docs, words = np.nonzero(matrix[:8])
    old = {"doc": [f"d{doc}" for doc in docs], "word": [f"w{word}" for word in words], "count": matrix[docs, words]}
    new = {
        "doc": ["n2", "d3", "n1", "n2", None, "n1", "d0", "n2", "d3"],
        "word": ["w0", "w1", "w3", "w2", "w1", "w3", "w4", None, "w0"],
        "count": [3, 1, 2, 2, 1, 5, 2, 1, 4],
    }
    half = {name: list(column[:40]) for name, column in survey.items()}
    other = {name: [*column[40:], None] for name, column in survey.items()}
    other["a"][-1] = "yes"
    settings = {"method": method} | ({"particles": 50, "runs": 2} if method == "smc" else {})
    flags = ["--method", method] + (["--particles", 50, "--runs", 2] if method == "smc" else [])
    for model, known, unknown in [("doc -> topic[2] -> word", old, new), ("class[2] -> a b c", half, other)]:
        for name, table in [("old", known), ("new", unknown)]:
            with open(tmp_path / f"{name}.csv", "w", newline="") as out:
                writer = csv.writer(out)
                writer.writerow(table)
                writer.writerows(zip(*table.values()))
        words = ["score", "--model", model, "--data", tmp_path / "old.csv", "--heldout", tmp_path / "new.csv", "--seed", 5]
        theirs = command(*words, *flags)
        ours = polyurn.score(model, known, heldout=unknown, random_state=5, **settings).to_dict()
        del theirs["heldout"], theirs["seconds"], ours["seconds"], theirs["warnings"], ours["warnings"]
        assert ours == {name: value if isinstance(value, (str, list)) or value is None else pytest.approx(value, rel=1e-11) for name, value in theirs.items()}
    wrong = {**other, "b": ["maybe", *other["b"][1:]]}
    with pytest.raises(ValueError, match="value `maybe`"):
        polyurn.score(model, known, heldout=wrong, random_state=5, **settings)
    assert polyurn.score(model, known, heldout=wrong, handle_unknown="missing", random_state=5, **settings)["dropped_values"] == 1
    with pytest.raises(ValueError, match="handle_unknown: it is about"):
        polyurn.score(model, known, handle_unknown="missing")
    with pytest.raises(ValueError, match="expected a frame"):
        polyurn.score(model, known, heldout=np.ones((2, 3)))
