"""Draw noise, with draws shared over channels, places or examples.

    gaussian:   z = h * (1 + sigma * eps),      eps ~ N(0, 1)
    bernoulli:  z = h * keep / (1 - p),         keep = [u >= p],  u ~ U(0, 1),  p = v / (1 + v)
    additive:   z = h + sigma * eps

Both multiplicative forms have mean h and variance v = sigma^2 times h^2.

One draw per unit averages out if a network sums over places. The variance of a sum over places,
sum_j w_j h_j, is

    v * sum_j (w_j h_j)^2     with one draw per unit,
    v * (sum_j w_j h_j)^2     with one draw for all places:

the second is large if the network relies on those places, the first is not.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.nn.layouts import Layout, SiteShape

Draw = Literal["unit", "place", "channel", "example"]
"""unit: one draw per entry (the paper). place: one for all channels of a place. channel: one for
all places of a channel. example: one for the whole example."""
Distribution = Literal["gaussian", "bernoulli"]
Form = Literal["multiplicative", "additive"]


def default_draw(layout: Layout) -> Draw:
    """Return the default draw: `channel` if there are places, otherwise `unit`."""
    return "channel" if layout.places else "unit"


def shared_dims(draw: Draw, layout: Layout) -> tuple[int, ...]:
    """Return the dimensions of the activations that share a draw."""
    if draw in ("place", "channel") and not layout.places:
        raise ValueError(
            f"draw: {draw} needs places (a feature map or a sequence), but there are none here; "
            "use unit or example"
        )
    channel, places = (layout.channel,), layout.places
    return {"unit": (), "place": channel, "channel": places, "example": channel + places}[draw]


def check_draw(draw: Draw | None, shapes: Mapping[str, SiteShape]) -> None:
    """Raise an error for a draw that needs places at a site without places."""
    for site, found in shapes.items():
        try:
            shared_dims(draw or "unit", found.layout)
        except ValueError as error:
            raise LupiError(f"site {site}: {error}") from None


def add_noise(
    h: Tensor,
    logvar: Tensor,
    layout: Layout,
    draw: Draw = "unit",
    distribution: Distribution = "gaussian",
    form: Form = "multiplicative",
) -> Tensor:
    """Return activations under noise; with Gaussian draws it is differentiable in both tensors.

    Args:
        h: activations, (B, ...).
        logvar: log of the variance, broadcastable to `h`.
        layout: of `h`.
        draw: what shares a draw.
        distribution: of the draws.
        form: whether noise multiplies `h` or is added to it.
    """
    if distribution == "bernoulli" and form == "additive":
        raise ValueError("distribution: bernoulli drops activations; it can't be additive")
    shape = list(h.shape)
    for dim in shared_dims(draw, layout):
        shape[dim] = 1
    # Reduced precision gets the draws of full precision.
    like = h.new_empty(shape, dtype=torch.promote_types(h.dtype, torch.float32))
    if distribution == "bernoulli":
        drop_rate = torch.sigmoid(logvar)  # v / (1 + v)
        kept = torch.rand_like(like) >= drop_rate
        return h * (kept / (1 - drop_rate)).to(h.dtype)
    scaled = (torch.exp(0.5 * logvar) * torch.randn_like(like)).to(h.dtype)
    return h + scaled if form == "additive" else torch.addcmul(h, h, scaled)
