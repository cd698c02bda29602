"""The cost of methods on sentences, as ratios measured in one process.

    python benchmarks/translation.py het-dropout --batch-size 64

A training step of 2-layer LSTMs with 256 units and beam search with 12 hypotheses, also in tokens
and sentences per second.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lupi.core import Batch
from lupi.loaders.xstar.reveal import append_xstar
from lupi.methods.registry import build_method, methods
from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.task import TranslationTask
from lupi_paper.translation.translator import Translator
from turns import Row, Timing, print_rows, time_in_turns, training_step

N_UNITS = 256
N_LINES = 2000
N_SEARCHED = 16
SEARCHED_LENGTH = 13
WORDS_PER_LANGUAGE = 8000
XSTAR_DIMS = 128
BEAM = 12


def measure(names: Sequence[str], rounds: int, batch_size: int, threads: int) -> Iterator[Row]:
    """Time each method's training step on sentences and its student's beam search.

    Noise is at the sites between layers, as in the paper. The base of both is `no-xstar`.
    """
    torch.set_num_threads(threads)
    task = random_sentences()
    batch = batches_of(task, batch_size)[0]
    n_tokens = int((batch.y != 0).sum())
    plain = build_method("no-xstar", {}, task.network(), task)
    base, search = training_step(plain, batch), _search(plain.student(), task)
    for name in names:
        settings = {"sites": ["*.between.*"]} if name.endswith("-dropout") else {}
        method = build_method(name, settings, task.network(), task)
        seen = append_xstar(batch) if method.sees_xstar_at_test else batch
        step = training_step(method, seen)
        row = time_in_turns("training step", name, step, "no-xstar", base, rounds)
        yield {**row, "unit": "tokens", "per_second": n_tokens / row["seconds"]}
        if method.sees_xstar_at_test:
            continue
        found = _search(method.student(), task)
        row = time_in_turns("beam search", name, found, "no-xstar", search, max(2, rounds // 3))
        yield {**row, "unit": "sentences", "per_second": N_SEARCHED / row["seconds"]}


def random_sentences() -> Any:
    """Make sentences of 4 to 22 words, some words much more frequent than others; x* is noise."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, n in (("train", N_LINES), ("val", 2), ("test", 2)):
            lengths = rng.integers(4, 23, n)
            for language in ("en", "de"):
                texts = [_random_line(language, length, rng) for length in lengths]
                (folder / f"{part}.{language}").write_text("\n".join(texts) + "\n")
                lengths = np.maximum(1, lengths + rng.integers(-2, 3, n))
        np.save(folder / "xstar.npy", rng.normal(size=(N_LINES, XSTAR_DIMS)).astype(np.float32))
        settings = TranslationSettings(
            root=folder,
            source="en",
            target="de",
            xstar=str(folder / "xstar.npy"),
            min_count=1,
            beam=BEAM,
        )
        network = TranslationNetworkSettings(n_units=N_UNITS, bidirectional=True)
        return TranslationTask(settings, network).for_run(N_LINES, seed=0)


def _random_line(language: str, length: int, rng: np.random.Generator) -> str:
    frequent = rng.zipf(1.3, length) % WORDS_PER_LANGUAGE
    rare = rng.integers(0, WORDS_PER_LANGUAGE, length)
    words = np.where(rng.random(length) < 0.5, frequent, rare)
    return " ".join(f"{language}{word}" for word in words)


def batches_of(task: Any, batch_size: int) -> list[Batch]:
    """Return the batches of an epoch, as a run would make them."""
    order = torch.Generator().manual_seed(0)
    return list(task.splits(N_LINES, seed=0).train.batches(batch_size, shuffle=order))


def searched(task: Any) -> list[str]:
    """Return sentences of one length: without training, searches go on to the longest allowed."""
    lines = [
        line for line in task.rows.pairs["train"].source if line.count(" ") == SEARCHED_LENGTH - 1
    ]
    return lines[:N_SEARCHED]


def _search(net: nn.Module, task: Any) -> Callable[[], None]:
    translator = Translator(net, task.run.source, task.run.target, task.run.settings)
    lines = searched(task)

    def search() -> None:
        translator.translate(lines)

    return search


def main() -> None:
    """Measure what the command line asks for."""
    parser = Timing(__doc__, "methods to measure; by default all")
    given = parser.parse_args()
    known = [name for name, cls in methods().items() if "tokens" in cls.output_kinds]
    rows = measure(given.methods or known, given.rounds, given.batch_size, given.threads)
    print_rows(rows, given.json)


if __name__ == "__main__":
    main()
