"""A small task over words, whose numbers can be computed by hand."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from conftest import VectorTask
from lupi.noise.sites import Site


class WordTrunk(nn.Module):
    """One score per word for class 1, and its opposite for class 0."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(scores), 2, padding_idx=0)
        of_one = torch.tensor(scores)
        self.embedding.weight.data = torch.stack([-of_one, of_one], 1) / 2
        self.words = Site()

    def forward(self, x: Tensor) -> Tensor:
        """Map word numbers (B, T) to scores (B, 2)."""
        total: Tensor = self.words(self.embedding(x)).sum(1)
        return total


class WordTask(VectorTask):
    """The log-odds of class 1 are the sum of the scores of a text's words."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__(xstar_kind="region", places="words", xstar_dim=1)
        self.scores = scores

    def network(self) -> nn.Module:
        return nn.Sequential(OrderedDict(trunk=WordTrunk(self.scores)))

    def example(self) -> Tensor:
        return torch.ones(2, 3, dtype=torch.long)
