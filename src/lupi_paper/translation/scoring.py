"""BLEU and chrF of lines, by sacrebleu, with the signatures that say how they were computed."""

from collections.abc import Sequence


def score_lines(
    lines: Sequence[str], references: Sequence[str], tokenised: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """Return scores and signatures.

    `bleu` of tokenised text counts its tokens as they stand, lower-cased: what papers on Multi30K
    report. Of other text it is sacrebleu's default, cased, beside `bleu_lc`, lower-cased.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics: dict[str, BLEU | CHRF] = {"chrf": CHRF(lowercase=tokenised)}
    if tokenised:
        metrics["bleu"] = BLEU(lowercase=True, tokenize="none", force=True)
    else:
        metrics["bleu"] = BLEU()
        metrics["bleu_lc"] = BLEU(lowercase=True)
    scores = {
        name: float(metric.corpus_score(list(lines), [list(references)]).score)
        for name, metric in metrics.items()
    }
    return scores, {name: str(metric.get_signature()) for name, metric in metrics.items()}
