"""Fit files and exports, read by tools that are not ours: zipfile, NumPy and pgmpy."""

import hashlib
import io
import json
import os
import pathlib
import random
import shlex
import subprocess
import tempfile
import unittest
import zipfile

import numpy
from pgmpy.inference import VariableElimination
from pgmpy.readwrite import BIFReader

POLYURN = shlex.split(os.environ.get("POLYURN", "cargo run --quiet --package polyurn-cli --"))


def polyurn(*words):
    return subprocess.run([*POLYURN, *map(str, words)], check=True, capture_output=True, text=True).stdout


class Fits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def fit(self, model, rows, method="vb"):
        (self.path / "data.csv").write_text(rows, encoding="utf-8")
        fit = self.path / "model.polyurn"
        words = ["--method", method, "--seed", 7, "--quiet", "-o", fit]
        polyurn("fit", "--model", model, "--data", self.path / "data.csv", *words)
        return fit

    def export(self, fit, to):
        path = self.path / f"out.{to}"
        polyurn("export", fit, "--to", to, "-o", path)
        return path

    def random_rows(self, *sizes, labels=str):
        draw = random.Random(5)
        header = ",".join(f"x{ix}" for ix in range(len(sizes)))
        lines = [",".join(labels(draw.randrange(size)) for size in sizes) for _ in range(200)]
        return "\n".join([header, *lines]) + "\n"

    def test_the_archive_opens_with_zipfile_and_numpy(self):
        fit = self.fit("k[3] -> x0 x1 x2", self.random_rows(4, 3, 5, labels=lambda value: f"é{value}"))
        archive = zipfile.ZipFile(fit)
        self.assertIsNone(archive.testzip())
        header = json.loads(archive.read("fit.json"))
        labels = json.loads(archive.read("labels.json"))
        self.assertEqual(header["format_version"], 2)
        self.assertEqual(labels[1], ["é0", "é1", "é2", "é3"])
        data = (self.path / "data.csv").read_bytes()
        self.assertEqual(header["data"]["sha256"], hashlib.sha256(data).hexdigest())
        for node in header["nodes"]:
            table = node["table"]
            rows, mean, sd = (
                numpy.load(io.BytesIO(archive.read(f"tables/{table}.{part}.npy"))) for part in ("rows", "mean", "sd")
            )
            self.assertEqual(rows.shape, (len(mean), len(node["parents"])))
            self.assertEqual(mean.shape[1], node["size"])
            numpy.testing.assert_allclose(mean.sum(axis=1), 1, rtol=1e-12)
            self.assertTrue((sd >= 0).all())
        whole = fit.read_bytes()
        self.assertEqual(archive.comment[-64:].decode(), hashlib.sha256(whole[:-64]).hexdigest())

    def check_network(self, fit):
        arrays = numpy.load(self.export(fit, "npz"))
        network = BIFReader(str(self.export(fit, "bif"))).get_model()
        self.assertTrue(network.check_model())
        tables = [name for name in arrays if name.startswith("table.")]
        self.assertEqual(len(tables), len(network.get_cpds()))
        for table in tables:
            node = table.removeprefix("table.")
            cpd = network.get_cpds(node)
            axes = list(arrays[f"axes.{table}"])
            self.assertEqual(cpd.variables, [axes[-1], *axes[:-1]])
            for axis in axes:
                self.assertEqual(cpd.state_names[axis], list(arrays[f"labels.{axis}"]))
            found = numpy.moveaxis(cpd.values, 0, -1)
            numpy.testing.assert_allclose(found, arrays[table], rtol=1e-12, atol=1e-15)
        return network

    def test_networks_load_in_pgmpy_with_the_same_tables(self):
        for model in ["k[3] -> x0 x1 x2", "x0 -> k[2] -> x1; x0 x1 -> x2", "a[2] -> x0 <- b[3]; b -> x1; x2"]:
            with self.subTest(model):
                self.check_network(self.fit(model, self.random_rows(4, 3, 5)))

    def test_labels_may_be_numbers_with_signs_and_points(self):
        rows = self.random_rows(4, 3, labels=lambda value: str(value - 1.5))
        self.check_network(self.fit("k[2] -> x0 x1", rows))

    def test_tied_tables_stand_once_for_each_node(self):
        self.check_network(self.fit("k[2] -> x0 x1; x0 ~ x1", self.random_rows(3, 3)))

    def test_predictions_are_those_of_pgmpy(self):
        fit = self.fit("a[2] -> b[3]; a -> x0 x1; b -> x2", self.random_rows(4, 3, 5))
        network = self.check_network(fit)
        (self.path / "new.csv").write_text("x0,x1,x2\n1,2,3\n0,,4\n")
        text = polyurn("predict", "--fit", fit, "--data", self.path / "new.csv", "--impute", "--json", "--quiet")
        lines = [json.loads(line) for line in text.splitlines()]
        inference = VariableElimination(network)
        for line, seen in zip(lines, [{"x0": "1", "x1": "2", "x2": "3"}, {"x0": "0", "x2": "4"}]):
            joint = inference.query(list(seen), show_progress=False)
            self.assertAlmostEqual(line["log_probability"], numpy.log(joint.get_value(**seen)), places=9)
            for group in ("hidden", "imputed"):
                for node, found in line[group].items():
                    if node not in seen:
                        posterior = inference.query([node], evidence=seen, show_progress=False)
                        self.assertAlmostEqual(found["probability"], posterior.values.max(), places=9)

    def test_topics_have_the_shape_that_pyldavis_takes(self):
        rows = self.random_rows(6, 9).replace("x0,x1", "doc,word")
        topics = json.loads(self.export(self.fit("doc -> topic[4] -> word", rows), "pyldavis").read_text())
        terms, documents = numpy.array(topics["topic_term_dists"]), numpy.array(topics["doc_topic_dists"])
        self.assertEqual((terms.shape, documents.shape), ((4, 9), (6, 4)))
        numpy.testing.assert_allclose(terms.sum(axis=1), 1)
        numpy.testing.assert_allclose(documents.sum(axis=1), 1)
        self.assertEqual((sum(topics["doc_lengths"]), sum(topics["term_frequency"])), (200, 200))


if __name__ == "__main__":
    unittest.main()
