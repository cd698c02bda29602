"""Students of estimators and of `lupi.attach` as files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import lupi
from lupi.errors import LupiError

RNG = np.random.default_rng(0)
QUICK: dict[str, Any] = {"epochs": 2, "random_state": 0}


def rows(n: int = 60) -> pd.DataFrame:
    frame = pd.DataFrame({"km": RNG.normal(30, 9, n), "van": RNG.choice(["old", "new"], n)})
    frame.loc[::7, "km"] = np.nan
    return frame


def test_a_classifier_of_rows(tmp_path: Path) -> None:
    frame = rows()
    y = np.where(frame["van"] == "old", 7, 9)
    model = lupi.LupiClassifier(**QUICK).fit(frame, y, xstar=RNG.normal(size=(60, 2)))
    student = lupi.load_student(model.export(tmp_path / "shipped"))
    found = [row["probabilities"]["9"] for row in student.predict(frame)]
    np.testing.assert_allclose(found, model.predict_proba(frame)[:, 1], atol=1e-5)
    assert "km, van" in repr(student)
    card = (tmp_path / "shipped/MODEL_CARD.md").read_text()
    assert "60 labelled rows" in card
    assert "No comparison was made" in card
    with pytest.raises(LupiError, match="already exists"):
        model.export(tmp_path / "shipped")


def test_a_regressor_of_arrays(tmp_path: Path) -> None:
    X = RNG.normal(3, 2, (60, 3))
    model = lupi.LupiRegressor(**QUICK).fit(X, 100 * X[:, 0])
    student = lupi.load_student(model.export(tmp_path / "shipped"))
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose([row["mean"] for row in student.predict(frame)], mean, rtol=1e-4)
    np.testing.assert_allclose([row["std"] for row in student.predict(frame)], std, rtol=1e-4)


def test_a_network_of_ones_own_needs_its_graph(tmp_path: Path) -> None:
    X, y = RNG.normal(size=(40, 3)), np.arange(40) % 2
    model = lupi.LupiClassifier(network=lambda n, k: nn.Linear(n, k), method="no-xstar", **QUICK)
    with pytest.raises(LupiError, match="exported as ONNX only: format='onnx'"):
        model.fit(X, y).export(tmp_path / "shipped")


def test_a_method_with_a_head_of_its_own(tmp_path: Path) -> None:
    X, y = RNG.normal(size=(60, 3)), np.arange(60) % 2
    model = lupi.LupiClassifier("hallucination", **QUICK).fit(X, y, xstar=X[:, :2])
    student = lupi.load_student(model.export(tmp_path / "shipped"))
    found = student.predict(pd.DataFrame(X, columns=["x0", "x1", "x2"]))
    expected = model.predict_proba(X)[:, 0]
    np.testing.assert_allclose([row["probabilities"]["0"] for row in found], expected, atol=1e-5)


def test_texts(tmp_path: Path) -> None:
    texts = ["so " * (i % 3) + f"{'good' if i % 2 else 'poor'} film {i}" for i in range(30)]
    labels = ["pos" if i % 2 else "neg" for i in range(30)]
    model = lupi.LupiTextClassifier(**QUICK).fit(
        texts, labels, rationales=[[[3 * (i % 3), 3 * (i % 3) + 4]] for i in range(30)]
    )
    student = lupi.load_student(model.export(tmp_path / "shipped"))
    found = [row["probabilities"]["pos"] for row in student.predict(texts)]
    np.testing.assert_allclose(found, model.predict_proba(texts)[:, 1], atol=1e-5)


def test_images(tmp_path: Path) -> None:
    images = RNG.integers(0, 255, (12, 24, 24, 3)).astype(np.uint8)
    y = np.arange(12) % 2
    model = lupi.LupiImageClassifier(
        network="small-vgg", pooling="attention", image_size=16, epochs=1, random_state=0
    )
    model.fit(images, y, regions=[(4, 4, 12, 12)] * 12)
    from PIL import Image

    Image.fromarray(images[0]).save(tmp_path / "a.png")
    student = lupi.load_student(model.export(tmp_path / "shipped"))
    (found,) = student.predict([tmp_path / "a.png"])
    expected = model.predict_proba(images[:1])[0, 0]
    assert found["probabilities"]["0"] == pytest.approx(expected, abs=1e-5)


def test_a_network_of_attach_as_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    lupi_net = lupi.attach(net, xstar=3)
    x = torch.randn(6, 4)
    lupi_net(x, torch.randn(6, 3))
    path = lupi.export_onnx(lupi_net, tmp_path / "net.onnx", x)
    session = runtime.InferenceSession(path.read_bytes())
    (found,) = session.run(None, {"x": x[:5].numpy()})
    np.testing.assert_allclose(found, lupi_net.predict(x[:5]).detach().numpy(), atol=1e-5)
    with pytest.raises(LupiError, match="already exists"):
        lupi.export_onnx(lupi_net, path, x)
