"""Tables as pandas, polars and pyarrow write them, read by the command line: the same evidence as from CSV."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.parquet

PROGRAM = os.environ["POLYURN"]


def table():
    """Answers of 500 people to three questions, some of them missing, and a number of each."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, 500)
    answers = {name: (rng.random(500) < 0.2 + 0.5 * kind).astype(int) for name in ("a", "b")}
    frame = pandas.DataFrame(answers)
    frame["c"] = pandas.Categorical(np.where(kind == 1, "yes", "no"))
    frame.loc[rng.random(500) < 0.1, "c"] = None
    frame["size"] = rng.normal(size=500).round(3)
    frame["count"] = rng.integers(1, 4, 500)
    return frame


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_polyurn(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)

    def evidence(self, file, *flags):
        found = self.run_polyurn("score", "--model", "a -> c; b -> c; size", "--data", file, "--bin", "size=3", "--json", "--quiet", *flags)
        self.assertEqual(found.returncode, 0, found.stderr)
        found = json.loads(found.stdout)
        return found["log_marginal"], found["tokens"], found["records"]

    def test_tables_of_all_writers_are_those_of_csv(self):
        frame = table()
        frame.to_csv(self.folder / "pets.csv", index=False)
        wanted = self.evidence("pets.csv", "--method", "vb")
        files = []
        for compression in (None, "snappy", "gzip", "brotli", "zstd", "lz4"):
            files.append(f"pandas-{compression}.parquet")
            frame.to_parquet(self.folder / files[-1], index=False, compression=compression, row_group_size=100)
        whole = polars.from_pandas(frame)
        whole.write_parquet(self.folder / "polars.parquet")
        whole.write_ipc(self.folder / "polars.arrow")
        whole.write_ipc(self.folder / "polars-zstd.feather", compression="zstd")
        whole.write_ipc_stream(self.folder / "polars.arrows")
        frame.to_feather(self.folder / "pandas.feather")
        batches = pyarrow.Table.from_pandas(frame, preserve_index=False)
        pyarrow.parquet.write_table(batches, self.folder / "old.parquet", version="1.0", use_dictionary=False)
        with pyarrow.ipc.new_stream(self.folder / "pyarrow.arrows", batches.schema) as stream:
            stream.write_table(batches, max_chunksize=64)
        files += ["polars.parquet", "polars.arrow", "polars-zstd.feather", "polars.arrows", "pandas.feather", "old.parquet", "pyarrow.arrows"]
        for file in files:
            with self.subTest(file):
                self.assertEqual(self.evidence(file, "--method", "vb"), wanted)

    def test_standard_input_is_read_too(self):
        frame = table()[["a", "b", "count"]]
        frame.to_parquet(self.folder / "a.parquet", index=False)
        bytes_of_file = (self.folder / "a.parquet").read_bytes()
        found = subprocess.run(
            [PROGRAM, "check", "-", "--format", "parquet", "--json"], input=bytes_of_file, capture_output=True, check=False
        )
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(json.loads(found.stdout)["tokens"], int(frame["count"].sum()))

    def test_what_is_no_table_is_refused_in_one_line(self):
        frame = table()
        frame["when"] = pandas.Timestamp("2024-01-31")
        frame.to_parquet(self.folder / "times.parquet", index=False)
        whole = (self.folder / "times.parquet").read_bytes()
        (self.folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
        (self.folder / "text.parquet").write_text("a,b\n1,2\n")
        (self.folder / "empty.arrow").write_bytes(b"")
        for file, wanted in [
            ("times.parquet", "column `when` holds Timestamp"),
            ("cut.parquet", "is no Parquet file, or not a whole one"),
            ("text.parquet", "is no Parquet file, or not a whole one"),
            ("empty.arrow", "is no Arrow stream, or not a whole one"),
        ]:
            found = self.run_polyurn("check", file)
            self.assertEqual(found.returncode, 2, found.stdout)
            self.assertEqual(found.stderr.count("\n"), 1, found.stderr)
            self.assertIn(wanted, found.stderr)


if __name__ == "__main__":
    unittest.main()
