"""The Reuters corpus of the package `lda`, as counts of words in documents.

Usage: reuters.py data FOLDER. Writes data.csv into FOLDER.
"""

import csv
import json
import sys
from importlib.metadata import version
from pathlib import Path

import lda.datasets

counts, words = lda.datasets.load_reuters(), lda.datasets.load_reuters_vocab()
with open(Path(sys.argv[2]) / "data.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["doc", "word", "count"])
    rows.writerows((doc, words[word], counts[doc, word]) for doc, word in zip(*counts.nonzero()))
print(json.dumps({"version": f"lda {version('lda')}"}))
