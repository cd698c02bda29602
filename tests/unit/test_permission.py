"""Code and servers that a file names are used only if the user allows that very name."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import Here
from lupi.errors import LupiError
from lupi.loaders.text.made_reviews import write_reviews
from lupi.permission import allow, allow_texts_in, allowed_names, require_permission
from lupi.train.run import run
from made_reviews import COLUMNS
from made_runs import run_from

PAYLOAD = """
from pathlib import Path
from torch import nn
with Path(__file__).with_name("ran").open("a") as file:
    file.write("x")
def make(n_words):
    return nn.Embedding(n_words, 4, padding_idx=0)
"""


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a file behind where it is imported, and texts to train on."""
    (tmp_path / "payload.py").write_text(PAYLOAD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "payload", raising=False)
    write_reviews(tmp_path / "reviews.csv", 120)
    return tmp_path


def settings(folder: Path, network: dict[str, Any]) -> dict[str, Any]:
    return {
        "task": {"name": "text", "path": str(folder / "reviews.csv"), **COLUMNS},
        "network": network,
        "train": {"epochs": 1, "schedule": "constant"},
    }


def finished(folder: Path) -> Path:
    """Return a run whose settings name code, as a stranger may send it."""
    raw = settings(folder, {"name": "cnn", "n_channels": 4})
    whole = run_from({**raw, "method": "het-dropout", "size": 40, "seed": 0})
    run(whole, folder / "run")
    path = folder / "run/settings.json"
    changed = json.loads(path.read_text())
    changed["network"] |= {"name": NAME, "encoder": "payload:make", "n_channels": None}
    path.write_text(json.dumps(changed))
    return folder / "run"


NAME = "custom"
COMPARISON = {
    "name": "hostile",
    "arms": {"no-xstar": {"method": "no-xstar"}},
    "sizes": [40],
    "seeds": [0, 1],
}


def test_a_run_folder_runs_no_code(payload: Path, here: Here) -> None:
    folder = finished(payload)
    for command in (
        ("export", str(folder), "--out", "out"),
        ("export", str(folder), "--format", "onnx", "--out", "out"),
        ("analyse", str(folder)),
        ("predict", str(folder), "--input", "a lamp"),
    ):
        code, _, said = here(*command)
        assert code == 2, said
        assert "payload:make" in said
        assert not (payload / "ran").exists(), command
    code, _, said = here("analyse", str(folder), "--allow", "payload:mak")
    assert code == 2
    assert not (payload / "ran").exists()
    code, _, said = here("analyse", str(folder), "--allow", "payload:make")
    assert (payload / "ran").exists(), said  # the stranger's weights are of another network
    assert "holds another network" in said


@pytest.mark.parametrize("encoder", ["payload:make", "os:_exit", "antigravity:geohash"])
def test_a_settings_file_runs_no_code(payload: Path, here: Here, encoder: str) -> None:
    raw = {**settings(payload, {"name": NAME, "encoder": encoder}), **COMPARISON}
    (payload / "mine.yaml").write_text(yaml.safe_dump(raw))
    for verb in ("compare", "plan", "train"):
        code, _, said = here(verb, "mine.yaml", "--out", "records")
        assert code == 2, said
        assert f"--allow '{encoder}'" in said.replace("\n", " ")
    assert not (payload / "ran").exists()


@pytest.mark.parametrize(
    "allowed", [("--allow", "payload:make"), ("--set", "network.encoder=payload:make")]
)
def test_a_name_on_the_command_line_is_allowed_in_workers_too(
    payload: Path, here: Here, monkeypatch: pytest.MonkeyPatch, allowed: tuple[str, str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(payload), prepend=":")
    raw = {**settings(payload, {"name": NAME, "encoder": "payload:make"}), **COMPARISON}
    (payload / "mine.yaml").write_text(yaml.safe_dump(raw))
    code, _, said = here("compare", "mine.yaml", "--out", "records", "--workers", "1", *allowed)
    assert code == 0, said


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The address of a server, then the paths that it was asked for."""
    paths: list[str] = []

    class Asked(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        paths.append(f"http://127.0.0.1:{server.server_port}")
        yield paths
        server.shutdown()


def test_a_run_folder_reaches_no_server(payload: Path, here: Here, asked: list[str]) -> None:
    folder = finished(payload)
    path = folder / "settings.json"
    changed = json.loads(path.read_text())
    changed["task"] = {"name": "imagenet", "root": asked[0]}
    changed["network"] = {}
    path.write_text(json.dumps(changed))
    for command in (("export", str(folder), "--out", "out"), ("analyse", str(folder))):
        code, _, said = here(*command)
        assert code == 2, said
        assert len(asked) == 1, command
    assert "would be fetched" in said


def test_only_the_very_name_is_allowed() -> None:
    allow("a:b")
    allow_texts_in({"x": ["c:d", {"y": "e:f"}], "n": 3})
    assert allowed_names() == ("a:b", "c:d", "e:f")
    require_permission("a:b", "key", "would run code")
    for name in ("a:bc", "a", "A:b", ""):
        with pytest.raises(LupiError, match=r"key: .*would run code\. If you trust it"):
            require_permission(name, "key", "would run code")
