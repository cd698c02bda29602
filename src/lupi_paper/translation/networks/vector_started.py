"""A translator that also sees a vector: the student of an oracle for sentences."""

from torch import Tensor, nn

from lupi_paper.translation.networks.seq2seq import Decoder, Memory, Seq2Seq


class VectorStarted(nn.Module):
    """A translator whose decoder's first state a vector changes: h_0 + W v.

    After IMG_D of Calixto, Liu, Campbell: "Incorporating Global Visual Features into
    Attention-Based Neural Machine Translation", EMNLP 2017. It sees (source, before, v, has): rows
    whose `has` is False start as without a vector.
    """

    def __init__(self, net: Seq2Seq, n_vector: int) -> None:
        super().__init__()
        self.net = net
        self.n_layers = len(net.decoder.layers)
        self.start = nn.Linear(n_vector, self.n_layers * net.decoder.embedding.embedding_dim)

    @property
    def decoder(self) -> Decoder:
        """What writes."""
        return self.net.decoder

    def encode(self, x: tuple[Tensor, ...]) -> Memory:
        """Read sentences and vectors."""
        vector, has = x[2:]
        memory = self.net.encode(x)
        change = self.start(vector) * has[:, None]  # (B, L H)
        change = change.unflatten(1, (self.n_layers, -1)).transpose(0, 1)  # (L, B, H)
        return memory._replace(start=memory.start._replace(h=memory.start.h + change))

    def forward(self, x: tuple[Tensor, ...]) -> Tensor:
        """Map sentences, the words before each word, and vectors to logits."""
        return self.net.decode(x, self.encode(x))
