"""The most probable next words of hypotheses.

Log-probabilities are not computed of every word, but of the few that can be among the best. These
are found by the maxima of groups of words: the k best words are in the k groups with the largest.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

GROUP = 64
"""Words of a group. Rows of logits have a multiple of it: a product is slow where the rows of its
result are not aligned."""
PART = 27 * GROUP
"""Words of one product at most: its weights stay in the processor's cache."""


class NextWords:
    """An output layer.

    Args:
        layer: maps o to the logits of words.
        scale: factor of what `best` gets instead of o.
        never: words that are never among the best.
    """

    def __init__(self, layer: nn.Linear, scale: float, never: tuple[int, ...]) -> None:
        n_words, n_units = layer.weight.shape
        n_parts = -(-n_words // PART)
        part = -(-n_words // (n_parts * GROUP)) * GROUP
        self._weight = layer.weight.new_empty(n_parts, n_units, part)
        for weight, rows in zip(self._weight, layer.weight.split(part), strict=True):
            weight.copy_(F.pad(rows, (0, 0, 0, part - len(rows))).t())
        bias = F.pad(layer.bias, (0, n_parts * part - n_words), value=-torch.inf)
        self._bias = bias.view(n_parts, 1, part)
        self._scale, self._last_word = scale, n_words - 1
        self._never = [divmod(word, part) for word in never]

    def best(self, o: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the k best continuations of each sentence's hypotheses, best first.

        Args:
            o: times the scale (N K, H).
            scores: log-probabilities of the hypotheses (N, K).
            k: number of continuations; where there are fewer, fewer are returned.

        Returns:
            Log-probabilities, places of hypotheses in N K, and words, each (N, k). Words of
            log-probability -inf are arbitrary.
        """
        n, width = scores.shape
        # P parts of the words, G groups in each
        every_o = o.expand(len(self._weight), -1, -1)
        logits = torch.baddbmm(self._bias, every_o, self._weight, alpha=1 / self._scale)
        grouped = logits.unflatten(2, (-1, GROUP))  # (P, N K, G, GROUP)
        maxima = grouped.amax(3)  # (P, N K, G)
        largest = logits.softmax(2).amax(2)  # (P, N K)
        total = (maxima.amax(2) - largest.log()).logsumexp(0)  # of all words
        for part, place in self._never:
            logits[part, :, place] = -torch.inf
            maxima[part, :, place // GROUP] = grouped[part, :, place // GROUP].amax(1)
        maxima = maxima.unflatten(1, scores.shape).permute(1, 2, 0, 3)  # (N, K, P, G)
        n_parts, n_groups = maxima.shape[2:]
        scores = scores - total.view_as(scores)
        sums = (maxima.flatten(2) + scores[..., None]).flatten(1)  # (N, K P G)
        at = sums.topk(min(k, sums.shape[1]), dim=1, sorted=False).indices  # (N, k)
        hypothesis, group = at // (n_parts * n_groups), at % (n_parts * n_groups)
        row = hypothesis + torch.arange(0, n * width, width, device=o.device)[:, None]
        place = (group // n_groups * (n * width) + row) * n_groups + group % n_groups
        words = grouped.view(-1, GROUP).index_select(0, place.flatten()).view(n, -1, GROUP)
        words = words + scores.gather(1, hypothesis)[..., None]  # (N, k, GROUP)
        values, chosen = words.flatten(1).topk(min(k, words[0].numel()), dim=1)
        of = chosen // GROUP
        word = group.gather(1, of) * GROUP + chosen % GROUP
        return values, row.gather(1, of), word.clamp_(max=self._last_word)
