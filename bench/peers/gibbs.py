"""The peer of collapsed Gibbs chains: tokens per second, and ln p(words, topics | documents) after the last sweep.

Usage: gibbs.py K FOLDER. Writes the data it used into FOLDER, so that both sides work on the same.
"""

import json
import sys
import time
import warnings
from collections import Counter
from importlib.metadata import version
from math import lgamma
from pathlib import Path

# It warns that two workers do not repeat themselves; that is known.
warnings.filterwarnings("ignore")
ALPHA, ETA, SWEEPS = 0.1, 0.01, 200


def ln_joint(model, n_topics):
    """ln p(words, topics | documents), from the words and topics of all tokens."""
    n_words, total = len(model.used_vocabs), 0.0
    topics, cells = Counter(), Counter()
    for doc in model.docs:
        own = Counter(doc.topics)
        total += lgamma(n_topics * ALPHA) - lgamma(n_topics * ALPHA + len(doc.topics))
        total += sum(lgamma(ALPHA + n) - lgamma(ALPHA) for n in own.values())
        topics.update(own)
        cells.update(zip(doc.topics, doc.words))
    total += sum(lgamma(n_words * ETA) - lgamma(n_words * ETA + n) for n in topics.values())
    return total + sum(lgamma(ETA + n) - lgamma(ETA) for n in cells.values())


def chain(docs, n_topics, workers, seed):
    import tomotopy as tp

    model = tp.LDAModel(k=n_topics, alpha=ALPHA, eta=ETA, seed=seed, min_cf=0, rm_top=0)
    for words in docs:
        model.add_doc(words)
    model.optim_interval, model.burn_in = 0, 0
    # The first call sets the model up: that is not what is timed.
    model.train(0, workers=workers)
    start = time.perf_counter()
    model.train(SWEEPS, workers=workers)
    seconds = time.perf_counter() - start
    n_tokens = model.num_words
    return seconds, n_tokens, ln_joint(model, n_topics) / n_tokens


def main(n_topics, folder):
    import lda.datasets

    counts = lda.datasets.load_reuters()
    with open(folder / "data.csv", "w") as out:
        out.write("doc,word,count\n")
        for doc, word in zip(*counts.nonzero()):
            out.write(f"{doc},{word},{counts[doc, word]}\n")
    docs = [[str(word) for word in row.nonzero()[0] for _ in range(row[word])] for row in counts]
    runs = [chain(docs, n_topics, 1, seed) for seed in range(1, 11)]
    two = [chain(docs, n_topics, 2, seed) for seed in range(1, 6)]
    return {
        "seconds": min(run[0] for run in runs),
        "seconds_two": min(run[0] for run in two),
        "n_tokens": runs[0][1],
        "ln_joint": [run[2] for run in runs],
        "version": "tomotopy " + version("tomotopy"),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]))))
