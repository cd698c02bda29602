"""The steps of a decoder with input feeding: each word's input holds the output before it.

    g_t = x_t + [o_{t-1}; h_{t-1}] W,   h_t, c_t = cell(g_t, c_{t-1})       (first layer)
    a_t = softmax(K h_t),   o_t = f * tanh(V' a_t + U h_t)

x_t is the projection of the word, K = M W_q and V' = M W_c are projections of the encoder's states
M: all three are computed once for all steps. The backward pass is written by hand, so that the
gradient of each weight is one product over all steps instead of a sum of one product per step.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Steps(NamedTuple):
    """What the steps returned."""

    outputs: Tensor
    """o (T, B, H)"""
    attention: Tensor
    """(T, B, S)"""
    h: Tensor
    """Last states (L, B, H)"""
    c: Tensor
    """Last cells (L, B, H)"""


def _cell(gates: Tensor, c: Tensor, c_after: Tensor, squashed: Tensor, h: Tensor) -> None:
    """Apply an LSTM cell to (B, 4 H) gates in place; write c, tanh(c) and h after it (B, H)."""
    n = c.shape[1]
    gates[:, : 2 * n].sigmoid_()
    gates[:, 2 * n : 3 * n].tanh_()
    gates[:, 3 * n :].sigmoid_()
    i, f, g, o = gates.chunk(4, 1)
    torch.mul(f, c, out=c_after).addcmul_(i, g)
    torch.mul(o, torch.tanh(c_after, out=squashed), out=h)


def _slopes(gates: Tensor, cells: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """Return what gradients are multiplied with on their way through a layer's cells.

    Args:
        gates: of all steps (T, B, 4 H).
        cells: c before each step (T, B, H).
        squashed: tanh of c after each step (T, B, H).

    Returns:
        From c to the gates i, f and g and from h to the gate o (T, B, 4, H); from h to c (T, B, H).
    """
    i, f, g, o = gates.chunk(4, 2)
    every = gates.new_empty(*i.shape[:2], 4, i.shape[2])
    to_i, to_f, to_g, to_o = every.unbind(2)
    aten = torch.ops.aten
    aten.sigmoid_backward.grad_input(g, i, grad_input=to_i)
    aten.sigmoid_backward.grad_input(cells, f, grad_input=to_f)
    aten.tanh_backward.grad_input(i, g, grad_input=to_g)
    aten.sigmoid_backward.grad_input(squashed, o, grad_input=to_o)
    return every, aten.tanh_backward(o, squashed)


def fed_steps(
    words: Tensor,
    keys: Tensor,
    values: Tensor,
    padding: Tensor,
    state: tuple[Tensor, Tensor, Tensor],
    join: Tensor,
    output_factor: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    between_factors: list[Tensor],
) -> Steps:
    """Go through all words of a batch.

    Args:
        words: the first layer's input projection of each word, with its biases (T, B, 4 H).
        keys: what states are compared with (B, S, H).
        values: what attention takes the mean of (B, S, H).
        padding: 0, or -inf where the source is padded (B, 1, S).
        state: h (L, B, H), c (L, B, H) and o (B, H) before the first word.
        join: U (H, H).
        output_factor: what each o is multiplied with (B, H).
        weights: of each layer, for its input (the first: for o) and its state (4 H, 2 H).
        biases: of each layer but the first (4 H,).
        between_factors: what the input of each layer but the first is multiplied with (B, H).
    """
    tensors = (words, keys, values, padding, *state, join, output_factor)
    # torch.compile and torch.export can't trace a custom autograd function
    if torch.compiler.is_compiling():
        return _plain_steps(*tensors, weights, biases, between_factors)
    every = (*tensors, *weights, *biases, *between_factors)
    cast = (tensor.to(words.dtype) for tensor in every)  # bfloat16 under autocast
    return Steps(*_FedSteps.apply(len(weights), *cast))  # type: ignore[no-untyped-call]


def _plain_steps(
    words: Tensor,
    keys: Tensor,
    values: Tensor,
    padding: Tensor,
    h: Tensor,
    c: Tensor,
    o: Tensor,
    join: Tensor,
    factor: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    between: list[Tensor],
) -> Steps:
    """Return the same as `_FedSteps`, by operations that torch differentiates."""
    states, cells = list(h.unbind()), list(c.unbind())
    outputs, attention = [], []
    for word in words.unbind():
        below = o
        for k, weight in enumerate(weights):
            base = biases[k - 1] if k else word
            gates = base + torch.cat([below, states[k]], 1) @ weight.t()
            i, f, g, out = gates.chunk(4, 1)
            cells[k] = f.sigmoid() * cells[k] + i.sigmoid() * g.tanh()
            states[k] = out.sigmoid() * cells[k].tanh()
            below = states[k] * between[k] if k < len(between) else states[k]
        weighted = (padding + below[:, None] @ keys.transpose(1, 2)).softmax(2)  # (B, 1, S)
        o = ((weighted @ values)[:, 0] + below @ join.t()).tanh() * factor
        outputs.append(o)
        attention.append(weighted[:, 0])
    every = (outputs, attention, states, cells)
    return Steps(*(torch.stack(tensors) for tensors in every))


class _FedSteps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, n_layers: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        words, keys, values, padding, h, c, o, join, factor = tensors[:9]
        weights, biases, between = _by_layer(n_layers, tensors[9:])
        n_steps, n_rows, n_units = len(words), *o.shape
        shape = (n_steps, n_rows, n_units)
        # inputs[i][t] is [input; state] of layer i, cells[i][t] is what step t begins with
        inputs = [words.new_empty(n_steps + 1, n_rows, 2 * n_units) for _ in weights]
        gates = [torch.empty_like(words) for _ in weights]
        cells = [words.new_empty(n_steps + 1, n_rows, n_units) for _ in weights]
        squashed = [words.new_empty(shape) for _ in weights]
        joined, outputs = words.new_empty(shape), words.new_empty(shape)
        attention = words.new_empty(n_steps, n_rows, keys.shape[1])
        for i in range(n_layers):
            inputs[i][0, :, n_units:] = h[i]
            cells[i][0] = c[i]
        for t in range(n_steps):
            below = o
            for i, weight in enumerate(weights):
                inputs[i][t, :, :n_units] = below
                base = biases[i - 1] if i else words[t]
                torch.addmm(base, inputs[i][t], weight.t(), out=gates[i][t])
                below = inputs[i][t + 1, :, n_units:]
                _cell(gates[i][t], cells[i][t], cells[i][t + 1], squashed[i][t], below)
                if i < n_layers - 1:
                    below = below * between[i]
            scores = torch.baddbmm(padding, below[:, None], keys.transpose(1, 2))  # (B, 1, S)
            weighted = scores.softmax(2)
            attention[t] = weighted[:, 0]
            torch.addmm(torch.bmm(weighted, values)[:, 0], below, join.t(), out=joined[t])
            joined[t].tanh_()
            o = torch.mul(joined[t], factor, out=outputs[t])
        tops = inputs[-1][1:, :, n_units:].contiguous()
        last_h = torch.stack([layer[-1, :, n_units:] for layer in inputs])
        last_c = torch.stack([layer[-1] for layer in cells])
        ctx.n_layers = n_layers
        ctx.save_for_backward(
            *(keys, values, join, factor, tops, joined, attention),
            *(*weights, *between, *inputs, *gates, *cells, *squashed),
        )
        ctx.mark_non_differentiable(attention)
        return outputs, attention, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_outputs: Tensor, _: Tensor, d_h: Tensor, d_c: Tensor
    ) -> tuple[Tensor | None, ...]:
        n = ctx.n_layers
        keys, values, join, factor, tops, joined, attention, *saved = ctx.saved_tensors
        weights, between, saved = saved[:n], saved[n : 2 * n - 1], saved[2 * n - 1 :]
        inputs, gates, cells, squashed = (saved[k * n : (k + 1) * n] for k in range(4))
        n_units = joined.shape[2]
        d_o, d_joined = torch.empty_like(joined), torch.empty_like(joined)
        d_scores = torch.empty_like(attention)
        slopes = [
            _slopes(*layer)
            for layer in zip(gates, (cell[:-1] for cell in cells), squashed, strict=True)
        ]
        d_gates = [gate.flatten(2) for gate, _ in slopes]  # written over the slopes
        d_inputs = [torch.empty_like(layer[:-1]) for layer in inputs]
        d_states, d_cells = list(d_h), list(d_c)
        d_fed = torch.zeros_like(joined[0])
        for t in reversed(range(len(joined))):
            torch.add(d_outputs[t], d_fed, out=d_o[t])
            d_joined[t] = torch.ops.aten.tanh_backward(d_o[t] * factor, joined[t])
            d_weighted = torch.bmm(d_joined[t][:, None], values.transpose(1, 2))[:, 0]  # (B, S)
            d_scores[t] = torch.ops.aten._softmax_backward_data(
                d_weighted, attention[t], 1, joined.dtype
            )
            d_below = torch.addmm(torch.bmm(d_scores[t][:, None], keys)[:, 0], d_joined[t], join)
            for i in reversed(range(n)):
                gate, to_c = slopes[i][0][t], slopes[i][1][t]
                d_state = d_below + d_states[i]
                d_cell = torch.addcmul(d_cells[i], d_state, to_c)
                gate[:, :3].mul_(d_cell[:, None])
                gate[:, 3].mul_(d_state)
                d_cells[i] = d_cell * gates[i][t, :, n_units : 2 * n_units]
                torch.mm(d_gates[i][t], weights[i], out=d_inputs[i][t])
                d_below, d_states[i] = d_inputs[i][t].split(n_units, 1)
                if i:
                    d_below = d_below * between[i - 1]
            d_fed = d_below
        d_weights = [d_gates[i].flatten(0, 1).t() @ inputs[i][:-1].flatten(0, 1) for i in range(n)]
        d_between = [
            (d_inputs[i + 1][..., :n_units] * gates[i][..., 3 * n_units :] * squashed[i]).sum(0)
            for i in range(n - 1)
        ]
        return (
            *(None, d_gates[0]),
            torch.bmm(d_scores.permute(1, 2, 0), tops.transpose(0, 1)),
            torch.bmm(attention.permute(1, 2, 0), d_joined.transpose(0, 1)),
            *(None, torch.stack(d_states), torch.stack(d_cells), d_fed),
            d_joined.flatten(0, 1).t() @ tops.flatten(0, 1),
            (d_o * joined).sum(0),
            *d_weights,
            *(d_gates[i].sum((0, 1)) for i in range(1, n)),
            *d_between,
        )


def _by_layer(
    n_layers: int, tensors: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the weights of all layers, and biases and factors of all but the first."""
    return (
        tensors[:n_layers],
        tensors[n_layers : 2 * n_layers - 1],
        tensors[2 * n_layers - 1 :],
    )
