"""The page of `lupi analyse`: what the noise of a run learned."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.analysis.findings import Findings, SiteFindings, groups_of
from lupi.analysis.observed import Observed, SiteNoise
from lupi.analysis.relations import Estimate
from lupi.files import write_json, write_text, write_whole
from lupi.report.figures.line_chart import Axis, Line, line_chart
from lupi.report.figures.styles import PALETTE
from lupi.report.samples import Pixels, coloured, data_uri, make_album, png, shade_texts
from lupi.report.sheets.sheet import Image, Section, render_sheet
from lupi.verdict.units import NOTHING, plain

MOST_ROWS = 150
"""Maximum number of rows of each group in a heat map."""
MOST_COLUMNS = 600
GAP = 4
"""Pixel rows between the groups of a heat map."""
COLOURS = (PALETTE[1], PALETTE[0])
RELATION_HEAD = ("noise of a row", "correlated with", "rank correlation", "95 % interval")


def write_analysis(
    folder: Path, name: str, found: Findings, observed: Observed, attention: Section | None = None
) -> Path:
    """Write analysis.html, analysis.json and the figures of each site; return the page's path."""
    for site, noise in zip(found.sites, observed.sites, strict=True):
        write_text(folder / f"{site.name}-units.svg", draw_profile(site))
        image = png(heat_map(noise, site.order, groups_of(observed))[0])
        write_whole(folder / f"{site.name}-rows.png", partial(_write_bytes, image))
    write_json(folder / "analysis.json", found.to_json())
    title = f"What did the noise learn? {name}"
    page = folder / "analysis.html"
    shown = [*sections(found, observed), *([] if attention is None else [attention])]
    write_text(page, render_sheet(title, lead(found), shown))
    return page


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def draw_profile(site: SiteFindings) -> str:
    """Draw the variance per unit of each group, sorted by energy, with bands, as SVG."""
    lines = [
        Line(
            f"{profile.group} ({profile.n_rows} rows)",
            range(1, len(profile.means) + 1),
            profile.means,
            colour,
            dash,
            low=profile.low,
            high=profile.high,
        )
        for profile, colour, dash in zip(site.profiles, COLOURS, ("solid", "dash"), strict=False)
    ]
    return line_chart(lines, Axis(f"{site.unit}s, sorted by energy"), Axis("mean noise variance"))


def heat_map(
    site: SiteNoise, order: Sequence[int], groups: Mapping[str, NDArray[np.bool_]]
) -> tuple[Pixels, str, str]:
    """Return a heat map of rows x units, and the values of its darkest and brightest colours.

    The groups are stacked. Rows are sampled evenly from each group; if there are many units,
    neighbouring ones are averaged.
    """
    parts = []
    for rows in groups.values():
        where = np.flatnonzero(rows)
        step = -(-where.size // MOST_ROWS) or 1
        parts.append(_narrowed(site.variances[where[::step]][:, list(order)]))
    # A few units with much noise would hide the others: clip 1 % at each end of the scale.
    ends = np.quantile(np.concatenate(parts), (0.01, 0.99))
    gap = np.full((GAP, parts[0].shape[1]), np.nan)
    values = np.concatenate([parts[0].clip(*ends), gap, parts[1].clip(*ends)])
    values = values.repeat(max(1, MOST_COLUMNS // values.shape[1]), axis=1)
    scale, images = coloured(site.name, values[None])
    return images[0], scale.low, scale.high


def _narrowed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average neighbouring columns so that at most MOST_COLUMNS are left."""
    n_units = values.shape[1]
    if n_units <= MOST_COLUMNS:
        return values
    begins = np.linspace(0, n_units, MOST_COLUMNS, endpoint=False).astype(np.intp)
    return np.add.reduceat(values, begins, axis=1) / np.diff([*begins, n_units])


def relation_rows(site: SiteFindings) -> list[list[str]]:
    """Return the table of correlations; empty if the noise does not vary."""
    if all(relation.correlation is None for relation in site.relations):
        return []
    return [
        [relation.noise, relation.to, *_estimate(relation.correlation)]
        for relation in site.relations
    ]


def _estimate(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None:
        return NOTHING, "does not vary"
    low, high = estimate.interval
    return f"{estimate.value:+.2f}", f"{low:+.2f} to {high:+.2f}"


def lead(found: Findings) -> list[str]:
    """Return the summary at the top of the page."""
    dependent = [site.name for site in found.sites if not site.collapsed]
    if dependent:
        first = f"The noise depends on x* at {len(dependent)} of {len(found.sites)} sites."
    else:
        first = "Collapsed: the noise no longer depends on x* at any site."
    return [
        first,
        f"{found.method}, x* {found.control}; {found.n_rows} of {found.n_held} validation rows. "
        "Their x* was revealed only for this analysis; training and selection did not use it.",
    ]


def sections(found: Findings, observed: Observed) -> Iterator[Section]:
    """Yield the sections of the page."""
    groups = groups_of(observed)
    first, second = found.groups
    for site, noise in zip(found.sites, observed.sites, strict=True):
        pixels, low, high = heat_map(noise, site.order, groups)
        yield Section(
            f"{site.name}: variance per {site.unit}",
            words=(
                *site.diagnosis,
                f"The {site.unit}s are sorted by energy, their mean variance over all rows. Bands "
                "are 95 % intervals of the mean.",
            ),
            drawing=draw_profile(site),
            wide=Image(
                data_uri(pixels),
                f"Heat map of variances, rows by {site.unit}s",
                f"Rows x {site.unit}s in the same order: {first} above, {second} below. "
                f"Dark is {low} or less, bright {high} or more.",
            ),
        )
        relations = relation_rows(site)
        if relations:
            yield Section(
                f"{site.name}: correlations of the noise",
                words=(
                    "Spearman's rank correlation over rows. About one in twenty intervals excludes "
                    "zero by chance. Correlation is not causation.",
                ),
                head=RELATION_HEAD,
                rows=relations,
            )
    if observed.samples:
        yield _images(observed.samples)
    if observed.texts:
        yield Section(
            "Noise in sample texts",
            words=(
                "The first correctly classified texts and the first misclassified ones; they were "
                "not selected.",
            ),
            texts=shade_texts(observed.texts),
        )


def _images(samples: dict[str, NDArray[Any]]) -> Section:
    album = make_album(samples)
    strips = [
        (
            Image(
                sample.outlined,
                f"Image labelled {sample.label} with its box",
                f"label {sample.label}, predicted {sample.prediction}",
            ),
            *(
                Image(
                    uri,
                    f"Noise variance at {scale.site}",
                    f"{scale.site}: dark {scale.low}, bright {scale.high}",
                )
                for uri, scale in zip(sample.maps, album.scales, strict=True)
            ),
        )
        for sample in album.samples
    ]
    return Section(
        "Noise in sample images",
        words=(
            "The first correctly classified images and the first misclassified ones; they were not "
            "selected. Next to each image is the variance that its x* would set in training.",
        ),
        strips=strips,
    )


def text_lines(site: SiteFindings) -> list[str]:
    """Return the site as lines for a terminal."""
    head = f"{site.name}: {len(site.order)} {site.unit}s, mean variance {plain(site.mean_variance)}"
    return [head, *site.diagnosis]
