"""A small made language: words are translated one by one; x* counts them."""

from pathlib import Path
from typing import Any

import numpy as np

from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.task import TranslationTask

NOUNS = ("dog", "cat", "man", "tree", "boat", "girl", "hat", "car")
N_LINES = {"train": 60, "val": 12, "test": 10}


def sentence(rng: np.random.Generator) -> list[str]:
    return [str(noun) for noun in rng.choice(NOUNS, rng.integers(2, 7))]


def translation(words: list[str]) -> str:
    return " ".join(f"{word}en" for word in words) + " ."


def vector(words: list[str]) -> list[float]:
    return [float(words.count(noun)) for noun in NOUNS]


def write_texts(root: Path, n_lines: dict[str, int] | None = None) -> Path:
    """Write texts in `en` and `de`, vectors.npz and captions, for train, val and test."""
    root.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {}
    for seed, (split, n) in enumerate((n_lines or N_LINES).items()):
        rng = np.random.default_rng(seed)
        sentences = [sentence(rng) for _ in range(n)]
        lines = {
            "en": [" ".join(words) + " ." for words in sentences],
            "de": [translation(words) for words in sentences],
            "caption": [f"an image of {' and '.join(sorted(words))}" for words in sentences],
        }
        for language, text in lines.items():
            (root / f"{split}.{language}").write_text("".join(f"{line}\n" for line in text))
        arrays[f"{split}_features"] = np.array([vector(w) for w in sentences], dtype=np.float16)
        arrays[f"{split}_rows"] = np.arange(n)
    np.savez(root / "vectors.npz", **arrays)
    return root


def translation_task(
    root: Path,
    network: dict[str, object] | None = None,
    size: int = N_LINES["train"],
    **changes: object,
) -> Any:
    """Return a task over the made texts, with vectors, and a network of few units.

    It knows the training lines of the run of `size` and seed 0.
    """
    if not (root / "train.en").exists():
        write_texts(root)
    settings = {
        "root": root,
        "source": "en",
        "target": "de",
        "xstar": str(root / "vectors.npz"),
        "beam": 3,
        **changes,
    }
    small = {"n_units": 8, "dropout": 0.2, **(network or {})}
    task = TranslationTask(
        TranslationSettings.parse(settings, "task"),
        TranslationNetworkSettings.parse(small, "network"),
    )
    return task.for_run(size, seed=0)
