from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from lupi.errors import LupiError
from lupi.loaders.xstar.reveal import reveal
from lupi.methods.registry import build_method
from lupi.subsets import nested_rows
from lupi.train.evaluate import compute_outputs
from lupi_paper.translation.scoring import score_lines
from lupi_paper.translation.text.sentences import Sentences
from lupi_paper.translation.text.vocabulary import END, PAD
from lupi_paper.translation.translator import AT_ONCE, Translator
from made_text import N_LINES, NOUNS, translation_task, write_texts
from reduced import losses_of


def test_splits_have_pairs_and_training_rows_alone_have_xstar(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    splits = task.splits(60, seed=0)
    assert [len(splits.train), len(splits.val), len(splits.test)] == [60, 12, 10]
    batch = next(splits.train.batches(999))
    assert batch.xstar is not None
    assert batch.xstar.shape == (60, len(NOUNS))
    for split in (splits.val, splits.test):
        assert next(split.batches(999)).xstar is None
    lines = [task.run.target.decode([t for t in row if t > END]) for row in batch.y.tolist()]
    source = [
        task.run.source.decode([t for t in row if t > END]) for row in batch.x.source.tolist()
    ]
    assert lines[0].split()[0] == f"{source[0].split()[0]}en"


def test_small_sets_are_parts_of_large_ones(tmp_path: Path) -> None:
    task = translation_task(tmp_path, min_count=1)

    def lines(size: int) -> set[str]:
        run = task.for_run(size, 1)
        train: Any = run.splits(size, 1).train
        return {run.run.source.decode(row) for row in train.source}

    assert len(lines(5)) == 5
    assert lines(5) < lines(40)


def test_xstar_may_be_partial_and_under_a_control(tmp_path: Path) -> None:
    task = translation_task(tmp_path)

    def vectors(**options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        batch = next(task.splits(40, seed=0, **options).train.batches(999))
        assert batch.xstar is not None
        assert batch.has_xstar is not None
        return batch.xstar, batch.has_xstar

    real, has = vectors()
    assert has.all()
    assert vectors(xstar_frac=0.25)[1].sum() == 10
    shuffled = vectors(control="shuffled")[0]
    assert sorted(shuffled.sum(1).tolist()) == pytest.approx(sorted(real.sum(1).tolist()))
    assert not torch.equal(shuffled, real)
    assert vectors(control="constant")[0].std(0).max() == 0


def test_lines_without_a_vector_have_no_xstar(tmp_path: Path) -> None:
    write_texts(tmp_path)
    np.savez(tmp_path / "some.npz", features=np.random.rand(15, 3), rows=np.arange(15) * 4)  # noqa: NPY002
    task = translation_task(tmp_path, xstar=str(tmp_path / "some.npz"))
    assert task.finding_counts == {"training line without x*": 45}
    batch = next(task.splits(60, seed=0, control="shuffled").train.batches(999))
    assert batch.has_xstar is not None
    assert batch.has_xstar.sum() == 15


def test_a_task_without_xstar_is_for_methods_without(tmp_path: Path) -> None:
    task = translation_task(tmp_path, xstar=None)
    build_method("no-xstar", {}, task.network(), task)
    with pytest.raises(LupiError, match=r"het-dropout uses x\*, but this task has none"):
        build_method("het-dropout", {}, task.network(), task)


def test_the_loss_of_a_batch_is_the_mean_over_its_tokens(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method = build_method("no-xstar", {}, task.network(), task).eval()
    batch = next(task.splits(60, seed=0).train.batches(999))
    tokens = batch.y != PAD
    output = method.predict(batch.x)
    expected = torch.nn.functional.cross_entropy(output[tokens], batch.y[tokens])
    assert torch.allclose(losses_of(method, batch).total, expected, atol=1e-6)
    method.task = translation_task(tmp_path, label_smoothing=0.5)
    assert not torch.allclose(losses_of(method, batch).total, expected, atol=1e-3)


def test_metrics_are_those_of_all_tokens_however_they_are_batched(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method = build_method("no-xstar", {}, task.network(), task)
    val = task.splits(60, seed=0).val
    whole = task.outcome.metrics(*compute_outputs(method, val, 999))
    assert task.outcome.metrics(*compute_outputs(method, val, 2)) == pytest.approx(whole, abs=1e-5)
    batch = next(val.batches(999))
    output, tokens = method.predict(batch.x), batch.y != PAD
    right = (output.argmax(2) == batch.y)[tokens].float().mean().item()
    assert whole["accuracy"] == pytest.approx(right)
    assert whole["perplexity"] == pytest.approx(np.exp(whole["loss"]))


def test_outputs_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method = build_method("no-xstar", {}, task.network(), task)
    val = task.splits(60, seed=0).val
    batch = next(val.batches(999))
    method.eval()
    with torch.no_grad():
        expected, n_tokens = task.outcome.condense(method.predict(batch.x), batch.y)
    found = compute_outputs(method, val, 2)
    torch.testing.assert_close(found.output, expected)
    assert torch.equal(found.y, n_tokens)
    assert n_tokens.tolist() != sorted(n_tokens.tolist())


def test_a_network_that_ignores_its_source_is_uninformative(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method = build_method("no-xstar", {}, task.network(), task)
    val = task.splits(60, seed=0).val
    for weight in method.parameters():
        weight.data.mul_(5)
    assert not task.outcome.is_uninformative(compute_outputs(method, val)[0])
    for weight in method.parameters():
        weight.data.zero_()
    assert task.outcome.is_uninformative(compute_outputs(method, val)[0])


def test_generation_reads_the_source_alone(tmp_path: Path) -> None:
    """The split's targets are replaced by nonsense: the same lines come out."""
    task = translation_task(tmp_path)
    net = task.network().eval()
    for weight in net.parameters():
        weight.data.mul_(8)
    test = task.splits(60, seed=0).test
    generated = task.fitted.generate(net, test, "test")
    assert len(set(generated.lines)) > 1
    test.target = [[5]] * len(test)
    assert task.fitted.generate(net, test, "test").lines == generated.lines
    assert set(generated.scores) == set(generated.signatures) == {"bleu", "chrf"}


def test_an_oracle_translates_with_xstar(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    method = build_method("oracle", {}, task.network(), task)
    for weight in method.parameters():
        weight.data.mul_(10)
    shown = task.splits(60, 0, reveal=True)
    real = task.fitted.generate(method.net.eval(), reveal(shown).test, "test").lines
    other = reveal(task.splits(60, 0, "shuffled", reveal=True))
    assert real != task.fitted.generate(method.net, other.test, "test").lines


def test_trivial_is_one_sentence_for_all(tmp_path: Path) -> None:
    write_texts(tmp_path)
    text = (tmp_path / "train.de").read_text().splitlines()
    text[10:20] = ["dogen dogen ."] * 10
    (tmp_path / "train.de").write_text("\n".join(text) + "\n")
    task = translation_task(tmp_path)
    splits = task.splits(60, seed=0)
    scores = task.outcome.trivial(splits.train, splits.test)
    references = (tmp_path / "test.de").read_text().splitlines()
    bleu = BLEU(lowercase=True, tokenize="none", force=True)
    expected = bleu.corpus_score(["dogen dogen ."] * 10, [references]).score
    assert scores["bleu"] == pytest.approx(expected)
    assert 0 < scores["accuracy"] < 0.5


def test_tokens_are_scored_as_they_stand_lower_cased() -> None:
    scores, signatures = score_lines(["A dog , here"], ["a dog , here"])
    assert scores["bleu"] == pytest.approx(100)
    assert "case:lc" in signatures["bleu"]
    assert "tok:none" in signatures["bleu"]


def translator_of(task: Any, net: Any, **changes: Any) -> Translator:
    settings = task.run.settings.model_copy(update=changes)
    return Translator(net, task.run.source, task.run.target, settings)


def test_unknown_words_are_copied_from_where_attention_was(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    net: Any = task.network()
    net.decoder.words.bias.data[1] = 100.0  # it writes nothing but unknown words
    translator = translator_of(task, net, beam=2)
    (line,) = translator.translate(["zebra zebra zebra zebra"])
    assert set(line.split()) == {"zebra"}
    kept = translator_of(task, net, beam=2, replace_unknown=False)
    assert set(kept.translate(["zebra"])[0].split()) == {"<unk>"}


def test_empty_and_long_lines(tmp_path: Path) -> None:
    task = translation_task(tmp_path)
    net = task.network()
    translator = translator_of(task, net, max_tokens=5, beam=2)
    lines = ["", "   ", "dog " * 5, "dog " * 500, "猫 \u2028 dog"]
    translations = translator.translate(lines)
    assert translations[:2] == ["", ""]
    assert translations[2] == translations[3]
    assert [translator.is_cut(line) for line in lines] == [False, False, False, True, False]
    assert translator.translate([]) == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, torch.nn.Module]:
    """A network that has learned to translate the made language."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = write_texts(tmp_path_factory.mktemp("texts"), {"train": 400, "val": 70, "test": 40})
    task = translation_task(root, {"n_units": 64, "dropout": 0.0, "bidirectional": True}, 400)
    method = build_method("no-xstar", {}, task.network(), task).train()
    optimizer = torch.optim.Adam(method.parameters(), 0.01)
    train = task.splits(400, seed=0).train
    for epoch in range(14):
        for batch in train.batches(20, torch.Generator().manual_seed(epoch)):
            optimizer.zero_grad()
            losses_of(method, batch).total.backward()
            optimizer.step()
    return task, method.net.eval()


def test_it_learns_to_translate(trained: tuple[Any, torch.nn.Module]) -> None:
    task, net = trained
    generated = task.fitted.generate(net, task.splits(400, seed=0).test, "test")
    assert generated.scores["bleu"] > 80


def test_lines_are_translated_the_same_alone_and_together(
    trained: tuple[Any, torch.nn.Module],
) -> None:
    task, net = trained
    translator = translator_of(task, net, beam=12)
    lines = (task.rows.settings.root / "val.en").read_text().splitlines()
    assert len(lines) > AT_ONCE
    together = translator.translate(lines)
    assert together == [translator.translate([line])[0] for line in lines]
    assert len(set(together)) > 50


@pytest.mark.parametrize(
    ("language", "number", "line", "message"),
    [
        ("en", 7, "", "train, line 7: empty line; correct it, or let such lines be left out"),
        ("de", 3, " \t", "train, line 3: empty line"),
        ("en", 2, "dog " * 101, "train, line 2: line with more than 100 words"),
    ],
)
def test_bad_lines_stop_or_are_counted(
    tmp_path: Path, language: str, number: int, line: str, message: str
) -> None:
    path = write_texts(tmp_path) / f"train.{language}"
    lines = path.read_text().splitlines()
    lines[number - 1] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LupiError, match=message):
        translation_task(tmp_path)
    task = translation_task(tmp_path, size=59, on_bad="skip")
    assert sum(task.finding_counts.values()) == 1
    assert len(task.splits(59, seed=0).train) == 59
    with pytest.raises(LupiError, match="60 rows was asked for; there are 59"):
        task.splits(60, seed=0)


def test_the_example_is_like_a_batch(tmp_path: Path) -> None:
    example = translation_task(tmp_path).example()
    assert isinstance(example, Sentences)
    assert len(example.source) == len(example.before) == 2


def test_a_bidirectional_encoder_has_an_even_number_of_units(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="needs an even number"):
        translation_task(tmp_path, {"n_units": 7, "bidirectional": True})


def test_a_changed_text_is_another_run(tmp_path: Path) -> None:
    settings = translation_task(tmp_path).rows.settings
    before = settings.with_content()
    (tmp_path / "val.en").write_text("".join(f"dog {i} .\n" for i in range(N_LINES["val"])))
    assert settings.with_content() != before
    with pytest.raises(LupiError, match="have changed since this run was planned"):
        translation_task(tmp_path, content=before.content)


def test_nothing_is_learned_from_other_lines_than_the_runs(tmp_path: Path) -> None:
    """Change every training line that the run does not have: what it knows stays the same."""
    root = write_texts(tmp_path)
    xstar = str(root / "{split}.caption")
    before = translation_task(tmp_path, size=20, xstar=xstar)
    own = set(nested_rows(np.zeros(60, dtype=np.int64), 20, 0).tolist())
    for language in ("en", "de", "caption"):
        path = root / f"train.{language}"
        lines = path.read_text().splitlines()
        path.write_text(
            "".join(f"{line if i in own else 'zebra zebra'}\n" for i, line in enumerate(lines))
        )
    after = translation_task(tmp_path, size=20, xstar=xstar)
    assert "zebra" in (root / "train.en").read_text()
    assert (len(after.run.source), len(after.run.target)) == (
        len(before.run.source),
        len(before.run.target),
    )
    batches = [next(task.splits(20, 0).train.batches(999)) for task in (before, after)]
    assert torch.equal(batches[0].y, batches[1].y)
    assert batches[0].xstar is not None
    assert batches[1].xstar is not None
    assert torch.equal(batches[0].xstar, batches[1].xstar)
    fewer = translation_task(tmp_path, size=3, xstar=xstar)
    assert len(fewer.run.source) < len(before.run.source)
