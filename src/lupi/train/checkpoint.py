"""Checkpoints as safetensors: tensors and plain values only, so that loading runs no code."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from lupi.core import Method
from lupi.errors import LupiError
from lupi.records import write_whole


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write a state dict whole."""
    copies = {key: value.detach().cpu().contiguous().clone() for key, value in weights.items()}
    write_whole(path, lambda temporary: save_file(copies, temporary))


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a state dict."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise LupiError(f"{path} can't be read as weights: {error}") from None


def helper_weights(method: Method) -> dict[str, Tensor]:
    """Return what a method has besides the student: never a part of the student's file."""
    weights = method.state_dict()
    return {key: value for key, value in weights.items() if not key.startswith("net.")}


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a nested state of dicts, lists, tensors and plain values whole."""
    tensors: dict[str, Tensor] = {}
    skeleton = _put_aside(state, "", tensors)
    copies = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    metadata = {"state": json.dumps(skeleton)}
    write_whole(path, lambda temporary: save_file(copies, temporary, metadata=metadata))


def load_state(path: Path) -> dict[str, Any]:
    """Read what `save_state` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            skeleton = json.loads(file.metadata()["state"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise LupiError(
            f"{path} can't be read as a checkpoint ({error}); delete it to start the run again"
        ) from None
    state: dict[str, Any] = _put_back(skeleton, tensors)
    return state


def _put_aside(node: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Replace tensors by references; write dicts as lists of pairs, as JSON keys are strings."""
    if isinstance(node, Tensor):
        tensors[path] = node
        return {"tensor": path}
    if isinstance(node, dict):
        pairs = [[key, _put_aside(value, f"{path}/{key}", tensors)] for key, value in node.items()]
        return {"dict": pairs}
    if isinstance(node, (list, tuple)):
        return {"list": [_put_aside(v, f"{path}/{i}", tensors) for i, v in enumerate(node)]}
    return node


def _put_back(node: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "dict" in node:
        return {key: _put_back(value, tensors) for key, value in node["dict"]}
    return [_put_back(value, tensors) for value in node["list"]]
