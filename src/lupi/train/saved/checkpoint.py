"""Checkpoints as safetensors: tensors and plain values only, so that loading runs no code."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lupi.core import Method
from lupi.errors import LupiError
from lupi.files import write_whole


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write a state dict whole."""
    _save(path, weights, {})


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a state dict."""
    try:
        return _load(path)[0]
    except (OSError, SafetensorError, ValueError) as error:
        raise LupiError(f"{path} can't be read as weights: {error}") from None


def helper_weights(method: Method) -> dict[str, Tensor]:
    """Return what a method has besides the student: never a part of the student's file."""
    weights = method.state_dict()
    return {key: value for key, value in weights.items() if not key.startswith("net.")}


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a nested state of dicts, lists, tensors and plain values whole."""
    tensors: dict[str, Tensor] = {}
    skeleton = _put_aside(state, "", tensors)
    _save(path, tensors, {"state": json.dumps(skeleton)})


def load_state(path: Path) -> dict[str, Any]:
    """Read what `save_state` wrote."""
    try:
        tensors, metadata = _load(path)
        state: dict[str, Any] = _put_back(json.loads(metadata["state"]), tensors)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise LupiError(
            f"{path} can't be read as a checkpoint ({error}); delete it to start the run again"
        ) from None
    return state


def _save(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors whole, with a sum by which damage is noticed: it would be wrong numbers."""
    copies = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    metadata = {**metadata, "sha256": _sum(copies, metadata)}

    def write(temporary: Path) -> None:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the user's other files; safetensors makes it private
        try:
            save_file(copies, temporary, metadata=metadata)
        except SafetensorError as error:  # the disk is full
            raise OSError(f"{path} can't be written: {error}") from None
        temporary.chmod(mode)

    write_whole(path, write)


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and metadata; a file of others need not have a sum."""
    with safe_open(path, framework="pt") as file:
        metadata: dict[str, str] = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    own = {key: value for key, value in metadata.items() if key != "sha256"}
    if metadata.get("sha256") not in (None, _sum(tensors, own)):
        raise ValueError("it is damaged: its SHA-256 is another than when it was written")
    return tensors, own


def _sum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
