"""Published scores that a comparison's settings quote, to be shown beside ours."""

from dataclasses import dataclass

from lupi.records import ComparisonRecord


@dataclass(frozen=True, slots=True)
class Quoted:
    """Scores of a publication; nothing here was measured and nothing is judged."""

    source: str
    scores: dict[tuple[str, int], float]
    """By arm and size."""


def read_quoted(record: ComparisonRecord) -> Quoted | None:
    """Return what the settings quote under `paper`, None if nothing (that can be read)."""
    paper = record.settings.get("paper")
    try:
        scores = {
            (arm, int(size)): float(score)
            for arm, by_size in paper["scores"].items()  # type: ignore[index]
            for size, score in by_size.items()
        }
        return Quoted(str(paper["source"]), scores)  # type: ignore[index]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
