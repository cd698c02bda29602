import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi_paper.translation.meteor import find_meteor, score_meteor
from made_text import translation_task

pytestmark = pytest.mark.extra
runs = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pycocoevalcap") is None,
    reason="METEOR needs Java and pip install 'lupi-paper[meteor]'",
)


@runs
def test_the_same_lines_score_100_and_stems_more_than_other_words() -> None:
    references = ["zwei hunde spielen im schnee"]
    same, signature = score_meteor(references, references, "de")
    assert same == pytest.approx(100)
    assert signature == "version:1.5|lang:de|modules:exact stem|lower"
    stem, _ = score_meteor(["zwei hunden spielen im schnee"], references, "de")
    other, _ = score_meteor(["zwei kühe spielen im schnee"], references, "de")
    assert other < stem < 100


@runs
def test_english_has_paraphrases() -> None:
    score, signature = score_meteor(["A dog , running ."], ["a dog , running ."], "en")
    assert score == pytest.approx(100)
    assert signature == "version:1.5|lang:en|modules:exact stem synonym paraphrase|lower"


@runs
def test_a_task_scores_by_it_if_asked_to(tmp_path: Path) -> None:
    task = translation_task(tmp_path, meteor=True)
    generated = task.fitted.generate(task.network(), task.splits(10, 0).val, "val")
    assert 0 <= generated.scores["meteor"] < 100
    assert "exact stem" in generated.signatures["meteor"]


def test_what_it_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LupiError, match=r"METEOR knows no xx, only cz .*; leave it off"):
        find_meteor("xx")
    monkeypatch.setattr("lupi_paper.translation.meteor.find_spec", lambda name: None)
    with pytest.raises(LupiError, match=r"pip install 'lupi-paper\[meteor\]'"):
        find_meteor("de")
