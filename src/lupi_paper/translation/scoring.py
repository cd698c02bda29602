"""BLEU and chrF of lines, by sacrebleu, with the signatures that say how they were computed."""

from collections.abc import Sequence


def score_lines(
    lines: Sequence[str], references: Sequence[str]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return scores and signatures of tokenised text.

    BLEU counts tokens as they stand, lower-cased: what papers on Multi30K report.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics: dict[str, BLEU | CHRF] = {
        "chrf": CHRF(lowercase=True),
        "bleu": BLEU(lowercase=True, tokenize="none", force=True),
    }
    scores = {
        name: float(metric.corpus_score(list(lines), [list(references)]).score)
        for name, metric in metrics.items()
    }
    return scores, {name: str(metric.get_signature()) for name, metric in metrics.items()}
