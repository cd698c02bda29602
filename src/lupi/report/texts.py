"""Sample texts for a page: words shaded by the variance of the noise, rationales underlined."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lupi.report.numbers import plain
from lupi.text_samples import TextSample

N_SHADES = 8
"""Number of shades; neighbouring words of one shade form one piece."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words with the same shade."""

    text: str
    inside: bool
    """Whether they belong to the rationale."""
    shade: int
    """Percentage of the largest variance of the site."""


@dataclass(frozen=True, slots=True)
class ShadedText:
    """One text at one site."""

    pieces: tuple[Piece, ...]
    label: str
    prediction: str


@dataclass(frozen=True, slots=True)
class ShadedSite:
    """The sample texts with the noise at one site."""

    site: str
    largest: str
    """The variance of the darkest shade."""
    texts: tuple[ShadedText, ...]


def shade_texts(samples: Sequence[TextSample]) -> list[ShadedSite]:
    """Shade the words of each text by site; all texts of a site share one scale."""
    sites = dict.fromkeys(site for sample in samples for site in sample.variances)
    return [_shade_site(site, [s for s in samples if site in s.variances]) for site in sites]


def _shade_site(site: str, samples: Sequence[TextSample]) -> ShadedSite:
    largest = max((max(s.variances[site], default=0.0) for s in samples), default=0.0)
    texts = (
        ShadedText(tuple(_pieces(s, s.variances[site], largest)), s.label, s.prediction)
        for s in samples
    )
    return ShadedSite(site, plain(largest), tuple(texts))


def _pieces(sample: TextSample, variances: Sequence[float], largest: float) -> Iterator[Piece]:
    def look(word: tuple[str, float, float]) -> tuple[bool, int]:
        _, inside, variance = word
        share = min(max(variance / largest, 0.0), 1.0) if largest > 0 else 0.0
        return inside >= 0.5, round(share * N_SHADES) * 100 // N_SHADES

    words = zip(sample.words, sample.region, variances, strict=True)
    for (inside, shade), alike in groupby(words, look):
        yield Piece(" ".join(word for word, _, _ in alike), inside, shade)
