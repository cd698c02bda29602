"""Reviews of products, made up from a small grammar: for a first try, and for tests.

One to three sentences of a review judge the product, and they are its rationale. All others are
about something else, some of them with the same adjectives: a friend's old phone may be awful
whatever the label. Nothing measured on these texts says anything about real ones.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from lupi.errors import LupiError

PRODUCTS = ("kettle", "lamp", "phone", "radio", "tent", "bicycle", "keyboard", "jacket", "drill")
PARTS = ("handle", "screen", "battery", "sound", "zip", "cable", "switch", "finish", "manual")
POSITIVE = (
    *("great", "solid", "superb", "reliable", "lovely", "sturdy", "clever", "fast", "quiet"),
    *("bright", "handy", "precise", "elegant", "flawless", "comfortable", "durable", "crisp"),
)
NEGATIVE = (
    *("awful", "flimsy", "poor", "unreliable", "ugly", "weak", "silly", "slow", "noisy"),
    *("dim", "clumsy", "vague", "cheap", "faulty", "uncomfortable", "fragile", "blurred"),
)
JUDGEMENTS = (
    "the {part} is {adjective}",
    "i find the {part} rather {adjective}",
    "for me this {product} is simply {adjective}",
    "after a week the {part} still seems {adjective}",
)
WHO = ("my sister", "a friend", "our neighbour", "my uncle", "the postman", "a colleague")
PLACES = ("garage", "kitchen", "garden", "office", "attic", "hallway", "workshop", "cellar")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TOWNS = ("oslo", "porto", "leeds", "turin", "basel", "malmo", "cork", "graz", "lyon", "ghent")
COLOURS = ("red", "blue", "green", "black", "white", "grey", "brown", "orange", "yellow", "pink")
ASIDES = (
    "{who} has an old {other} that is {adjective}",
    "the parcel came from {town} on {day} while i was in the {place}",
    "i bought it together with a {colour} {other} for {who}",
    "it stands in the {place} beside the {colour} {other}",
    "{who} from {town} wanted to know the price of the {other}",
    "on {day} we carried the {other} to the {place}",
    "there was a {colour} box with a note from {town}",
    "{who} keeps a {colour} {other} in the {place}",
)
COLUMNS = ("review", "label", "spans")


def write_reviews(path: Path, n: int, seed: int = 0) -> None:
    """Write reviews, labels (good or bad) and spans: as CSV, or as Label Studio exports (.json)."""
    if n < 1:
        raise LupiError(f"{n} reviews were asked for; expected one or more")
    rng = np.random.default_rng(seed)
    if path.suffix.lower() == ".json":
        tasks = [_studio_task(number, *make_review(rng)) for number in range(1, n + 1)]
        path.write_text(json.dumps(tasks, indent=1), encoding="utf-8")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(make_review(rng) for _ in range(n))


def _studio_task(number: int, text: str, label: str, spans: str) -> dict[str, Any]:
    """Return a task with one annotation, as Label Studio exports it."""
    marks = [
        {"type": "labels", "value": {"start": a, "end": b, "text": text[a:b], "labels": ["why"]}}
        for a, b in json.loads(spans)
    ]
    choice = {"type": "choices", "value": {"choices": [label]}}
    return {"id": number, "data": {"text": text}, "annotations": [{"result": [choice, *marks]}]}


def make_review(rng: np.random.Generator) -> tuple[str, str, str]:
    """Return a review, its label, and the spans of the sentences that judge."""
    is_good = bool(rng.random() < 0.5)
    product = str(rng.choice(PRODUCTS))
    n_judgements = int(rng.integers(1, 4))
    sentences = [
        _fill(JUDGEMENTS, POSITIVE if is_good else NEGATIVE, product, rng)
        for _ in range(n_judgements)
    ]
    sentences += [
        _fill(ASIDES, (*POSITIVE, *NEGATIVE), str(rng.choice(PRODUCTS)), rng)
        for _ in range(int(rng.integers(8, 17)))
    ]
    text, spans = "", []
    for i in rng.permutation(len(sentences)):
        if i < n_judgements:
            spans.append([len(text), len(text) + len(sentences[i])])
        text += sentences[i] + ". "
    return text.rstrip(), "good" if is_good else "bad", json.dumps(spans)


def _fill(
    forms: tuple[str, ...], adjectives: tuple[str, ...], product: str, rng: np.random.Generator
) -> str:
    return str(rng.choice(forms)).format(
        product=product,
        adjective=rng.choice(adjectives),
        part=rng.choice(PARTS),
        other=rng.choice(PRODUCTS),
        who=rng.choice(WHO),
        place=rng.choice(PLACES),
        day=rng.choice(DAYS),
        town=rng.choice(TOWNS),
        colour=rng.choice(COLOURS),
    )
