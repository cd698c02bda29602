"""Frozen text encoders: one vector per word, cached, and students on them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import lupi
from conftest import Here
from lupi.errors import LupiError
from lupi.loaders.text.made_reviews import write_reviews
from lupi.networks.text_backbones import load_text_backbone
from lupi.records import read_result
from lupi.ship.export import export
from lupi.train.run import run
from made_runs import run_from

transformers = pytest.importorskip("transformers", reason="the extra `examples` is not installed")
tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.extra

PIECES = ["[UNK]", "[CLS]", "[SEP]", "good", "film", "##s", "bad", "a"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A tiny BERT with random weights and a vocabulary of eight pieces."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "bert")
    vocabulary = {piece: i for i, piece in enumerate(PIECES)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(tmp_path / "bert/tokenizer.json"))
    return str(tmp_path / "bert")


def test_pieces_are_joined_to_words(folder: str) -> None:
    backbone = load_text_backbone("transformers", folder)
    (vectors,) = backbone.encode([["good", "films", "bad"]])
    ids = torch.tensor([[1, 3, 4, 5, 6, 2]])  # films: film ##s
    states = backbone.backbone.net(input_ids=ids).last_hidden_state[0]
    expected = torch.stack([states[1], states[2:4].mean(0), states[4]])
    assert torch.allclose(vectors, expected, atol=1e-6)


def test_long_texts_are_encoded_in_windows_and_batches_do_not_matter(folder: str) -> None:
    backbone = load_text_backbone("transformers", folder)
    long, short = ["good", "films"] * 20, ["bad"]
    together = backbone.encode([long, short])
    alone = [backbone.encode([text])[0] for text in (long, short)]
    assert together[0].shape == (40, 8)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(together, alone, strict=True))
    assert together[0].isfinite().all()
    assert (together[0] != 0).any(1).all()


def train(folder: str, tmp_path: Path, pooling: str) -> Path:
    path = tmp_path / "reviews.csv"
    write_reviews(path, 60)
    task = {"name": "text", "path": path, "text": "review", "target": "label", "rationale": "spans"}
    raw = {
        "task": {**task, "cache": tmp_path / "cache"},
        "network": {"name": "transformers", "model": folder, "pooling": pooling},
        "train": {"epochs": 2},
        "method": "het-dropout" if pooling == "mean" else "guided-attention",
        "size": 20,
        "seed": 0,
    }
    run(run_from(raw), tmp_path / "run")
    return tmp_path / "run"


TEXTS = ["a good film", "bad films a " * 9, "é \u200b good"]


@pytest.mark.parametrize("pooling", ["mean", "attention", "both"])
def test_a_student_on_frozen_vectors_trains_and_predicts_strings(
    folder: str, tmp_path: Path, pooling: str
) -> None:
    run_folder = train(folder, tmp_path, pooling)
    assert ("pointing" in read_result(run_folder)["metrics"]["test"]) == (pooling != "mean")
    assert len(list((tmp_path / "cache").glob("words-*.npy"))) == 1
    student = lupi.load_student(run_folder)
    alone = student.outputs(student.encode(TEXTS[:1]))
    together = student.outputs(student.encode(TEXTS))[:1]
    assert torch.allclose(alone, together, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "attention"])
@pytest.mark.parametrize("format_", ["torch", "onnx"])
def test_the_exported_student_has_its_encoder_and_needs_no_folder(
    folder: str, tmp_path: Path, pooling: str, format_: Any
) -> None:
    run_folder = train(folder, tmp_path, pooling)
    here = lupi.load_student(run_folder)
    expected = here.outputs(here.encode(TEXTS))
    done = export(run_folder, tmp_path / "student", format_)
    shutil.rmtree(folder)
    load_text_backbone.cache_clear()
    shipped = lupi.load_student(done.folder)
    assert torch.allclose(shipped.outputs(shipped.encode(TEXTS)), expected, atol=1e-5)
    assert done.difference < 1e-5
    predicted = shipped.predict(TEXTS)
    assert predicted[0]["prediction"] in ("bad", "good")
    (done.folder / "tokenizer.json").write_text("{}")
    with pytest.raises(LupiError, match="not the exported file"):
        lupi.load_student(done.folder)


def test_strings_are_predicted_on_the_command_line(folder: str, tmp_path: Path, here: Here) -> None:
    exported = export(train(folder, tmp_path, "attention"), tmp_path / "student", "torch").folder
    texts = [option for text in TEXTS for option in ("--input", text)]
    code, out, _ = here("predict", str(exported), *texts)
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    expected = lupi.load_student(exported).predict(TEXTS)
    assert [line["probabilities"] for line in lines] == [p["probabilities"] for p in expected]


def test_minilm_is_found_or_says_how_to_get_it() -> None:
    try:
        backbone = load_text_backbone("minilm")
    except LupiError as error:
        assert "pip install" in str(error)  # noqa: PT017
        return
    good, bad = (v[0] for v in backbone.encode([["good"], ["bad"]]))
    assert good.shape == (384,)
    assert not torch.allclose(good, bad)


def test_the_estimator_and_a_linear_model_use_the_vectors(folder: str) -> None:
    texts = ["good films", "a good film", "bad film", "a bad bad film"] * 4
    y = [1, 1, 0, 0] * 4
    rationales = [["good"] if label else ["bad"] for label in y]
    model = lupi.LupiTextClassifier(
        "guided-attention", network=folder, pooling="attention", random_state=0, val_frac=0
    )
    model.fit(texts, y, rationales)
    assert model.score(texts, y) == 1.0
    assert model.predict(["good"]).shape == (1,)
