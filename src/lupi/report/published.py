"""Published scores quoted in the settings of a comparison."""

from dataclasses import dataclass

from lupi.records import ComparisonRecord


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """Scores of a publication. They are shown but never judged."""

    source: str
    scores: dict[tuple[str, int], float]
    """By arm and size."""


def read_published(record: ComparisonRecord) -> PublishedScores | None:
    """Return the scores under `paper` in the settings; None if missing or invalid."""
    paper = record.settings.get("paper")
    try:
        scores = {
            (arm, int(size)): float(score)
            for arm, by_size in paper["scores"].items()  # type: ignore[index]
            for size, score in by_size.items()
        }
        return PublishedScores(str(paper["source"]), scores)  # type: ignore[index]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
