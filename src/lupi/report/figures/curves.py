"""Figures of a comparison: numbers in, plotly figures out.

Backgrounds are transparent and text is a mid grey, so a figure can stand on a light and on a dark
page.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from lupi.report.figures.styles import NEUTRAL, PALETTE, SYMBOLS, Style, colour
from lupi.report.sentences import families, percent
from lupi.report.training import Curve
from lupi.verdict.results import Summary
from lupi.verdict.units import is_share, score, unit

GRID = "rgba(128, 128, 128, 0.25)"


def fraction_curves(summary: Summary, size: int) -> go.Figure:
    """Draw the mean score by the fraction of rows with x*, one line per family.

    The axis is logarithmic, with 0 one step to the left of the smallest other fraction.
    """
    figure = new_figure(unit(summary.metric), "training rows with x*")
    scale = 100 if is_share(summary.metric) else 1
    by_family = families(summary)
    place = fraction_places(arm.xstar_frac for arms in by_family.values() for arm in arms)
    for i, (family, arms) in enumerate(by_family.items()):
        measured = [(arm, c, c.mean) for arm in arms if (c := arm.at(size)).mean is not None]
        ends = [cell.interval or (mean, mean) for _, cell, mean in measured]
        dash = "solid" if arms[-1].control == "real" else "dash"
        add_points(
            figure,
            family,
            Style(colour(i), dash, SYMBOLS[i % len(SYMBOLS)]),
            [place[arm.xstar_frac] for arm, _, _ in measured],
            [scale * mean for _, _, mean in measured],
            [(scale * low, scale * high) for low, high in ends],
            [
                f"{percent(arm.xstar_frac)}: {score(mean, summary.metric)}, {cell.verdict}"
                for arm, cell, mean in measured
            ],
        )
    reference = next(arm for arm in summary.arms if arm.name == summary.reference)
    plain = reference.at(size).mean
    if plain is not None:
        figure.add_hline(
            y=scale * plain,
            line={"dash": "dot", "color": NEUTRAL, "width": 1.5},
            annotation={"text": html.escape(summary.reference), "yanchor": "bottom"},
        )
    ticks = {"tickvals": list(place.values()), "ticktext": [percent(frac) for frac in place]}
    figure.update_xaxes(range=[min(place.values()) - 0.15, max(place.values()) + 0.15], **ticks)
    return figure


def add_points(
    figure: go.Figure,
    arm: str,
    style: Style,
    places: Sequence[float],
    means: Sequence[float],
    ends: Sequence[tuple[float, float]],
    hints: Sequence[str],
    *,
    across: bool = False,
    is_open: Sequence[bool] = (),
) -> None:
    """Add the means of an arm, at places of the other axis, with the ends of their intervals.

    Means are upwards with a line between them, or `across` without; `is_open` are open markers.
    """
    bars = {
        "array": [high - mean for mean, (_, high) in zip(means, ends, strict=True)],
        "arrayminus": [mean - low for mean, (low, _) in zip(means, ends, strict=True)],
        "thickness": 1.5,
        "width": 3,
    }
    symbols = [f"{style.symbol}-open" if is_empty else style.symbol for is_empty in is_open]
    marker = {"symbol": symbols or style.symbol, "size": 9, "color": style.colour}
    line = {"color": style.colour, "dash": style.dash, "width": 2}
    drawn: dict[str, Any] = {"x": places, "y": means, "error_y": bars, "line": line}
    if across:
        drawn = {"x": means, "y": places, "error_x": bars}
    figure.add_scatter(
        **drawn,
        mode="markers" if across else "lines+markers",
        marker=marker,
        customdata=hints,
        hovertemplate="%{customdata}",
        **named(arm),
    )


def fraction_places(fractions: Iterable[float]) -> dict[float, float]:
    """Return the positions of fractions on a logarithmic axis with a place for 0."""
    ordered = sorted(set(fractions))
    smallest = next((frac for frac in ordered if frac > 0), 1.0)
    zero = math.log10(smallest) - 0.4
    return {frac: math.log10(frac) if frac > 0 else zero for frac in ordered}


def epoch_curves(
    curves: Mapping[str, Curve], styles: Mapping[str, Style], metric: str
) -> go.Figure:
    """Draw the validation score by epoch, one line per arm."""
    figure = new_figure(unit(metric), "epoch")
    scale = 100 if is_share(metric) else 1
    for arm, curve in curves.items():
        style = styles[arm]
        figure.add_scatter(
            x=curve.epochs,
            y=[scale * mean for mean in curve.means],
            mode=_mode(curve),
            line={"color": style.colour, "dash": style.dash, "width": 2},
            hovertemplate=f"epoch %{{x}}: %{{y:.4~g}} (mean of {curve.n_runs} runs)",
            **named(arm),
        )
    return figure


def variance_curves(
    inside: Mapping[str, Curve], outside: Mapping[str, Curve], styles: Mapping[str, Style]
) -> go.Figure:
    """Draw a site's noise variance inside (thick) and outside (thin, dotted) the box, per arm."""
    figure = new_figure("noise variance", "epoch")
    for where, curves in (("inside", inside), ("outside", outside)):
        for arm, curve in curves.items():
            dash = "solid" if where == "inside" else "dot"
            figure.add_scatter(
                x=curve.epochs,
                y=curve.means,
                mode=_mode(curve),
                line={
                    "color": styles[arm].colour,
                    "dash": dash,
                    "width": 3 if where == "inside" else 2,
                },
                hovertemplate=f"{where} the box, epoch %{{x}}: %{{y:.3~g}}",
                **named(arm, where),
            )
    figure.update_yaxes(rangemode="tozero")
    return figure


def run_figures() -> dict[str, Any]:
    """Return empty figures for the curves of one run, and their line styles."""
    figures = {
        "loss": new_figure("training loss", "epoch"),
        "lr": new_figure("learning rate", "epoch"),
        "variance": new_figure("noise variance", "epoch"),
    }
    figures["lr"].update_yaxes(type="log", tickformat=".0e", dtick="D2")
    figures["variance"].update_yaxes(rangemode="tozero")
    for figure in figures.values():
        figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.5})
    dashes = ("solid", "dash", "dot", "dashdot")
    looks = [
        {"color": tone, "dash": dashes[i % len(dashes)], "width": 2}
        for i, tone in enumerate(PALETTE)
    ]
    layouts = {name: figure.to_plotly_json()["layout"] for name, figure in figures.items()}
    return {"layouts": layouts, "lines": looks}


def named(arm: str, suffix: str = "") -> dict[str, str]:
    """Return the name of a line, for the page's legend."""
    # Plotly reads tags in names; `legendgroup` is never drawn and keeps the name as it is.
    name = html.escape(arm)
    return {"name": f"{name} {suffix}" if suffix else name, "legendgroup": arm}


def _mode(curve: Curve) -> str:
    return "lines" if len(curve.epochs) > 1 else "markers"


def new_figure(y: str, x: str) -> go.Figure:
    """Return a figure without lines."""
    axis = {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "fixedrange": True}
    return go.Figure(
        layout={
            "template": "none",
            "paper_bgcolor": "rgba(0, 0, 0, 0)",
            "plot_bgcolor": "rgba(0, 0, 0, 0)",
            "font": {"color": NEUTRAL, "size": 13, "family": "system-ui, sans-serif"},
            "margin": {"l": 56, "r": 16, "t": 16, "b": 48},
            "xaxis": {"title": {"text": html.escape(x)}, **axis},
            "yaxis": {"title": {"text": html.escape(y)}, **axis},
            "hovermode": "closest",
            "dragmode": False,
            "modebar": {"bgcolor": "rgba(0, 0, 0, 0)", "color": NEUTRAL},
            "legend": {"orientation": "h", "y": -0.2},
        }
    )
