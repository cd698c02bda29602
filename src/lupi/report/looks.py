"""Where students with attention look: the same test rows for the plain student and the taught."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lupi.errors import LupiError
from lupi.record_types import ComparisonRecord, RunRecord
from lupi.report.images import Album, make_album
from lupi.report.texts import ShadedSite, shade_texts
from lupi.text_samples import read_text_samples
from lupi.unpack import read_arrays
from lupi.verdict.results import Summary
from lupi.verdict.roles import is_candidate

MOST_ARMS = 3


@dataclass(frozen=True, slots=True)
class Looks:
    """Attention of some arms in test rows of one seed."""

    size: int
    seed: int
    arms: tuple[str, ...]
    album: Album | None = None
    """Images; its maps are those of the arms."""
    texts: Sequence[ShadedSite] = ()
    """Texts, one site per arm."""


def read_looks(
    record: ComparisonRecord, summary: Summary, warnings: list[str], classes: Sequence[str] = ()
) -> Looks | None:
    """Return the samples of the plain arm and the first arms with x*; None if there are none.

    They are of the largest size, and of its first seed with samples of every chosen arm.
    """
    order = [summary.reference, *(arm.name for arm in summary.arms if is_candidate(arm))]
    found: dict[tuple[int, int], dict[str, Path]] = {}
    for run in record.runs:
        if run.plan.arm in order and (path := _samples(run)) is not None:
            found.setdefault((-run.plan.size, run.plan.seed), {})[run.plan.arm] = path
    if not found:
        return None
    n_arms = max(map(len, found.values()))
    (size, seed), paths = next((k, v) for k, v in sorted(found.items()) if len(v) == n_arms)
    arms = tuple(arm for arm in order if arm in paths)[:MOST_ARMS]
    try:
        if paths[arms[0]].suffix == ".json":
            texts = [shade_texts(read_text_samples(paths[arm])) for arm in arms]
            return Looks(-size, seed, arms, texts=[sites[0] for sites in texts if sites])
        arrays = read_arrays(paths[arms[0]])
        arrays.pop("attention")
        for i, arm in enumerate(arms):
            arrays[f"variance/{i} {arm}"] = read_arrays(paths[arm])["attention"]
        return Looks(-size, seed, arms, album=make_album(arrays, classes))
    except (LupiError, KeyError, TypeError, ValueError, IndexError) as error:
        warnings.append(f"{record.folder}: attention can't be shown: {error}")
        return None


def _samples(run: RunRecord) -> Path | None:
    paths = (run.folder / "attention.npz", run.folder / "attention.json")
    return next((path for path in paths if path.exists()), None)
