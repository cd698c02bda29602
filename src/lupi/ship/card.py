"""The model card of an exported student: purpose, evidence, limits.

It is the only file of an exported folder that mentions x*.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lupi import __version__
from lupi.escapes import markdown_code, markdown_text
from lupi.methods.registry import find_method
from lupi.records import read_result
from lupi.ship.description import Description
from lupi.ship.pick import Judged, judge_run
from lupi.ship.refit import Refitted
from lupi.train.settings import RunSettings
from lupi.verdict.units import count, difference, interval


def model_card(
    run_folder: Path,
    settings: RunSettings,
    description: Description,
    format_: str,
    n_rows: int,
    difference: float,
    refitted: Refitted | None = None,
) -> str:
    """Return the model card of a run's student, in Markdown."""
    result = read_result(run_folder)
    judged = judge_run(run_folder) if refitted is None else refitted.judged
    name = judged.summary.comparison if judged else settings.task.name
    sections = {
        "Training": [*_training(settings), *_pretrained(description)],
        "Evidence": [
            *(_scores(result) if refitted is None else _expected(refitted)),
            "",
            *_verdict(judged),
        ],
        "This export": [
            f"- Format {format_}, written by lupi {__version__} from run "
            f"{markdown_code(run_folder.name)}.",
            f"- Outputs compared with the original's on {n_rows} test rows: largest difference "
            f"{difference:.2g}.",
            FILES,
        ],
        "Limits": [*_limits(description, result)],
    }
    title = f"{markdown_text(name)}: {settings.method}, n = {settings.size}, seed {settings.seed}"
    return _written(title, description, sections)


FILES = (
    "- `student.json` describes the preprocessing and the outputs; `manifest.json` contains the "
    "SHA-256 of every file."
)


def estimator_card(
    description: Description, method: str, n_labels: int, n_rows: int, difference: float
) -> str:
    """Return the model card of an estimator's student, which no comparison judged."""
    found = find_method(method)
    of_xstar = "used privileged information (x*), which the model does not take as an input"
    if not found.uses_xstar:
        of_xstar = "did not use privileged information (x*)"
    sections = {
        "Training": [
            f"- {n_labels} labelled rows, with `fit` of a scikit-learn estimator.",
            f"- Method `{found.name}`: {found.summary}.",
            f"- Training {of_xstar}.",
            *_pretrained(description),
        ],
        "Evidence": ["No comparison was made, so it is unknown whether x* helped."],
        "This export": [
            f"- Written by lupi {__version__}. Outputs compared with the original's on {n_rows} "
            f"random inputs: largest difference {difference:.2g}.",
            FILES,
        ],
        "Limits": [*_limits(description, {"status": "finished"})],
    }
    return _written(f"{found.name}, {n_labels} labels", description, sections)


def _written(title: str, description: Description, sections: Mapping[str, Sequence[str]]) -> str:
    lines = [f"# {title}", "", _purpose(description)]
    for head, text in sections.items():
        lines += ["", f"## {head}", "", *text]
    return "\n".join(lines) + "\n"


def _purpose(description: Description) -> str:
    target = description.target
    what = markdown_code(target.name) if target.name else "the class"
    if target.kind == "regression":
        what += ", with a standard deviation,"
    else:
        shown = ", ".join(map(markdown_text, target.classes[:10]))
        more = f", … ({len(target.classes)} classes)" if len(target.classes) > 10 else ""
        what += f" ({shown}{more})"
    if description.images is not None:
        side = description.images.image_size
        return f"Predicts {what} of an image, resized to {side}x{side} pixels."
    if description.texts is not None:
        return f"Predicts {what} of a text."
    columns = ", ".join(markdown_code(column.name) for column in description.encoder().columns)
    return f"Predicts {what} of a row of a table from {columns}."


def _training(settings: RunSettings) -> Iterator[str]:
    task, method = settings.task, find_method(settings.method)
    data = getattr(task, "path", None) or getattr(task, "root", None)
    of = f" of {markdown_code(Path(data).name)}" if data else ""
    yield f"- {settings.size} training rows{of} (task `{task.name}`), seed {settings.seed}."
    yield f"- Method `{method.name}`: {method.summary}."
    if not method.uses_xstar:
        yield "- Training did not use privileged information (x*)."
        return
    named = ", ".join(markdown_code(column) for column in getattr(task, "privileged", ()))
    region = "the region of the object in each training image (a box or a mask)"
    what = named or ("the rationale of each text" if task.name == "text" else region)
    real = "" if settings.control == "real" else f" ({settings.control}, as a control)"
    yield f"- Privileged information (x*), used only in training{real}: {what}."
    if settings.xstar_frac < 1:
        yield f"- {settings.xstar_frac:.0%} of the training rows had x*."
    yield "- The model does not take x* as an input."


def _pretrained(description: Description) -> Iterator[str]:
    part = description.backbone
    if part is not None:
        frozen = "frozen" if description.frozen is not None else "trained further"
        of = f" (`{Path(part.model).name}`)" if part.model else ""
        yield f"- Pretrained part: `{part.name}`{of}, {frozen}; SHA-256 `{part.checksum}`."


def _scores(result: dict[str, Any]) -> Iterator[str]:
    metrics, trivial = result.get("metrics", {}), result.get("trivial", {})
    yield "| score of this run | validation | test | test, predictor that ignores x |"
    yield "|---|---|---|---|"
    for key, value in metrics.get("test", {}).items():
        others = metrics.get("val", {}).get(key), value, trivial.get(key)
        yield (
            f"| {markdown_text(key)} | "
            + " | ".join("–" if v is None else f"{v:.4g}" for v in others)
            + " |"
        )
    if result.get("collapsed"):
        yield ""
        yield "The noise of this run did not depend on x* (collapsed): x* had no effect."


def _expected(refitted: Refitted) -> Iterator[str]:
    yield (
        f"This student was {refitted.about}. It has no test score of its own: the rows that the "
        "comparison tested on are among its training rows. The evidence is the comparison's."
    )


def _verdict(judged: Judged | None) -> Iterator[str]:
    if judged is None:
        yield "This run is not part of a comparison, so it is unknown whether x* helped."
        return
    summary, arm, cell = judged
    yield f"**Did x\\* help?** {markdown_text(summary.headline)}"
    yield ""
    yield markdown_text(summary.statement.exact)
    yield ""
    for note in summary.statement.notes:
        yield f"- {markdown_text(note)}"
    if summary.statement.notes:
        yield ""
    if cell.mean is not None:
        ends = ""
        if cell.interval is not None:
            ends = f", 95 % interval {cell.interval[0]:.4g} to {cell.interval[1]:.4g}"
        yield (
            f"Test {markdown_text(summary.metric)} of {markdown_code(arm)} at n = {cell.size} "
            f"over {count(cell.n_seeds, 'seed')}: mean {cell.mean:.4g}{ends}. Verdict: "
            f"{cell.verdict}. If this run was chosen as the best of them, expect the mean score "
            "on new data, not its own."
        )
        yield ""
    if cell.scope is not None:
        yield f"The verdict applies to {markdown_text(cell.scope)}."
        yield ""
    for found in cell.differences:
        yield (
            f"- against {markdown_code(found.other)}: {difference(found.mean, summary.metric)} "
            f"(95 % interval {interval(found.interval, summary.metric)}; + is better)"
        )
    for warning in summary.warnings:
        # Details of findings quote annotations, which are x*.
        yield f"- warning: {markdown_text(warning.partition(', the first in')[0])}"


def _limits(description: Description, result: dict[str, Any]) -> Iterator[str]:
    yield "- The scores apply to data like the training data; other data were not tested."
    if description.target.kind == "classification":
        yield "- Probabilities are softmax outputs and were not calibrated."
        yield "- The prediction is always one of the classes, even if none applies."
    else:
        yield "- The predicted standard deviation was not calibrated."
    if description.texts is not None:
        yield "- Words that do not occur in the training texts are ignored."
    if description.features is not None:
        yield (
            "- Unknown categories count as “other”; missing values are replaced by the mean "
            "of the training rows."
        )
    if result.get("status") != "finished":
        yield f"- Training ended as “{markdown_text(str(result.get('status')))}”."
