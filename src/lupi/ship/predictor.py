"""A student as a function from arrays to arrays, for `lupi predict`.

`import torch` takes longer than all the rest of a prediction, and linear networks, perceptrons and
bags of words are a few products: NumPy computes those, equal but for rounding (1e-6 of the largest
output). Whatever is not exactly such a network is left to torch, and to its messages.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from lupi.files import read_json
from lupi.limits import check_regular
from lupi.methods.facts import list_facts
from lupi.records import STUDENT, find_run
from lupi.ship.description import Description
from lupi.ship.manifest import DESCRIPTION, MANIFEST, ONNX, WEIGHTS, check_manifest
from lupi.tasks.table_network import N_HIDDEN, N_LAYERS, TableNetworkSettings
from lupi.tasks.text.network import TextNetworkSettings

if TYPE_CHECKING:
    from lupi.networks.text_backbones import WordPieces

Weights = Mapping[str, NDArray[np.float32]]
Network = Callable[[NDArray[Any]], NDArray[Any]]


class Predictor(NamedTuple):
    """A student without its torch module."""

    description: Description
    outputs: Network
    """From x (B, ...) to logits (B, K), or mean and log-variance (B, 2)."""
    pieces: "WordPieces | None" = None
    """Of a student on a pretrained text encoder: its tokenizer."""


def load_predictor(folder: Path, n_threads: int = 1) -> Predictor:
    """Load an exported student or that of a finished run, with its checks; see `load_student`."""
    small = _load_small(folder)
    if small is not None:
        return small
    import torch

    from lupi.ship.student import load_student

    torch.set_num_threads(n_threads)
    student = load_student(folder)
    return Predictor(
        student.description,
        lambda x: student.outputs(torch.from_numpy(x)).numpy(force=True),
        student.pieces,
    )


def _load_small(folder: Path) -> Predictor | None:
    if (folder / MANIFEST).exists():
        check_manifest(folder, (DESCRIPTION, ONNX, WEIGHTS))
        path = folder / WEIGHTS
        if not path.exists():
            return None
        description = Description.parse(read_json(folder / DESCRIPTION), DESCRIPTION)
    else:
        run = find_run(folder)
        path = run / STUDENT
        settings, about = read_json(run / "settings.json"), run / "preprocessing.json"
        if not path.exists() or not about.exists() or not _trains_the_network(settings):
            return None
        description = Description.of_run(settings["network"], read_json(about))
    weights = _read_weights(path)
    network = None if weights is None else _network(description, weights)
    return None if network is None else Predictor(description, network)


def _trains_the_network(settings: Mapping[str, Any]) -> bool:
    """Return whether a run's student is the network of a table or text task, and nothing more."""
    task = settings.get("task")
    facts = {fact.name: fact for fact in list_facts()}.get(str(settings.get("method")))
    return (
        isinstance(task, dict)
        and task.get("name") in ("table", "text")
        and isinstance(settings.get("network"), dict)
        and facts is not None
        and not (facts.sees_xstar_at_test or facts.extends_student)
    )


def _read_weights(path: Path) -> Weights | None:
    """Return the weights if they are what was written, numbers of 32 bits."""
    try:
        check_regular(path)
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, TypeError):
        return None
    digest = hashlib.sha256(b"{}")
    for key in sorted(weights):
        if weights[key].dtype != np.float32:
            return None
        digest.update(f"{key} torch.float32 {weights[key].shape}".encode() + weights[key].tobytes())
    return weights if metadata.get("sha256") in (None, digest.hexdigest()) else None


def _network(description: Description, weights: Weights) -> Network | None:
    """Return the function of a small network, if these are its weights."""
    if description.extended is not None or description.backbone is not None:
        return None
    n_outputs = description.target.n_outputs
    shapes: dict[str, tuple[int, ...]] = {}
    layers: dict[str, tuple[int, int]] = {}
    if description.texts is not None:
        texts = TextNetworkSettings.parse(description.network, "network")
        if texts.name != "bag-of-words":
            return None
        network = _bag_of_words(weights)
        shapes["trunk.embedding.weight"] = (len(description.texts.words) + 1, n_outputs)
        shapes["head.bias"] = (n_outputs,)
    elif description.features is not None:
        table = TableNetworkSettings.parse(description.network, "network")
        n_in = description.encoder().width
        if table.name == "linear":
            layers["out"] = (n_outputs, n_in)
        else:
            n, n_hidden = table.n_layers or N_LAYERS, table.n_hidden or N_HIDDEN
            if table.embedding is not None:
                n_waves, n_channels = 8, 4
                shapes["trunk.embed.frequencies"] = (n_in, n_waves)
                shapes["trunk.embed.mix.weight"] = (n_channels, 2 * n_waves)
                shapes["trunk.embed.mix.bias"] = (n_channels,)
                n_in *= 1 + n_channels
            widths = [n_in, *[n_hidden] * n]
            names = [*(f"trunk.fc{i}" for i in range(1, n)), f"head.fc{n}"]
            layers = {name: (n_hidden, width) for name, width in zip(names, widths, strict=False)}
            layers["head.out"] = (n_outputs, n_hidden)
        network = _perceptron(weights, tuple(layers))
    else:
        return None
    for name, shape in layers.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return network if {key: w.shape for key, w in weights.items()} == shapes else None


def _perceptron(weights: Weights, layers: tuple[str, ...]) -> Network:
    """See `lupi.networks.mlp`."""

    def linear(x: NDArray[Any], layer: str) -> NDArray[Any]:
        product: NDArray[Any] = x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
        return product

    def outputs(x: NDArray[Any]) -> NDArray[Any]:
        if "trunk.embed.frequencies" in weights:
            angles = 2 * math.pi * x[..., None] * weights["trunk.embed.frequencies"]
            waves = linear(np.concatenate([np.sin(angles), np.cos(angles)], -1), "trunk.embed.mix")
            x = np.concatenate([x, np.maximum(waves, 0).reshape(len(x), -1)], 1)
        for layer in layers[:-1]:
            x = np.maximum(linear(x, layer), 0)
        return linear(x, layers[-1])

    return outputs


def _bag_of_words(weights: Weights) -> Network:
    """See `lupi.networks.text.WordScores`."""

    def outputs(x: NDArray[Any]) -> NDArray[Any]:
        x = np.sort(x, 1)
        is_new = (x > 0) & np.diff(x, axis=1, prepend=0).astype(bool)  # each word once
        scores = weights["trunk.embedding.weight"][x] * is_new[..., None]  # (B, T, K)
        root = np.sqrt(is_new.sum(1, keepdims=True, dtype=np.float32).clip(1))
        return np.asarray(scores.sum(1) / root + weights["head.bias"])

    return outputs
