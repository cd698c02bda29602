"""JoeyNMT with the sizes of a translation task, on the same sentences.

Kreutzer, Bastings, Riezler: "Joey NMT: A Minimalist NMT Toolkit for Novices", EMNLP-IJCNLP 2019.
It is used as its own training and prediction use it: packed sentences, its optimizer, its search.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from lupi.core import Batch
from lupi.errors import LupiError
from lupi_paper.translation.text.sentences import sources, to_learn
from lupi_paper.translation.text.vocabulary import END, PAD, START, UNKNOWN

VERSION = "2.3.0"
LEARNING_RATE = 1e-3


class JoeyNMT:
    """A network of JoeyNMT as large as a task's student: two layers, Luong's attention."""

    def __init__(self, task: Any) -> None:
        try:
            from joeynmt.builders import build_optimizer
            from joeynmt.model import build_model
            from joeynmt.vocabulary import Vocabulary
        except ImportError as error:
            raise LupiError(
                f"--against joeynmt: JoeyNMT can't be imported ({error}); install it in an "
                f"environment of its own, as the page on translation says: joeynmt=={VERSION}"
            ) from None
        self.task = task
        network = task.network_settings
        special = SimpleNamespace(
            unk_token="<unk>",
            pad_token="<pad>",
            bos_token="<s>",
            eos_token="</s>",
            sep_token=None,
            lang_tags=[],
            unk_id=0,
            pad_id=1,
            bos_id=2,
            eos_id=3,
        )
        vocabularies = [
            Vocabulary([f"w{i}" for i in range(4, len(known))], special)
            for known in (task.run.source, task.run.target)
        ]
        layers = {
            "rnn_type": "lstm",
            "num_layers": network.n_layers,
            "dropout": network.dropout,
            "embeddings": {"embedding_dim": network.n_units, "dropout": network.embedding_dropout},
        }
        settings = {
            "encoder": {
                **layers,
                "type": "recurrent",
                "hidden_size": network.n_units // 2,  # in each direction
                "bidirectional": True,
            },
            "decoder": {
                **layers,
                "type": "recurrent",
                "hidden_size": network.n_units,
                "hidden_dropout": network.dropout,
                "attention": "luong",
                "init_hidden": "last",
                "input_feeding": network.input_feeding,
            },
        }
        self.model: Any = build_model(settings, *vocabularies)
        self.model.loss_function = ("crossentropy", task.rows.settings.label_smoothing)
        options = {"optimizer": "adam", "learning_rate": LEARNING_RATE}
        self._optimizer: Any = build_optimizer(options, self.model.parameters())

    def mixed(self, batches: Sequence[Batch]) -> list[Batch]:
        """Return the sentences of batches in as many batches as JoeyNMT makes: in random order."""
        pairs = [
            (source[source != PAD][:-1].tolist(), words[words != PAD][:-1].tolist())
            for batch in batches
            for source, words in zip(batch.x[0], batch.y, strict=True)
        ]
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
        mixed = [
            to_learn([pairs[i][0] for i in part], [pairs[i][1] for i in part])
            for part in order.tensor_split(len(batches))
        ]
        return [Batch(x, y, n_targets=int((y != PAD).sum())) for x, y in mixed]

    def training_step(self, *batches: Batch) -> Callable[[], None]:
        """Return what trains for a step on each batch."""
        rivals = [self._batch(batch.x[0], batch.y) for batch in batches]
        self.model.train()

        def step() -> None:
            self.model.train()
            for batch in rivals:
                self.model.zero_grad()
                loss = self.model(return_type="loss", **vars(batch))[0]
                batch.normalize(loss, "tokens").backward()
                self._optimizer.step()

        return step

    def search(self, lines: Sequence[str], width: int) -> Callable[[], None]:
        """Return what translates lines, for as many steps as `beam_search` would take at most."""
        from joeynmt.search import search

        encoded = [self.task.run.source.encode(line) for line in lines]
        batch = self._batch(sources(encoded), None)
        longest = 2 * (max(map(len, encoded)) + 1) + 10

        def run() -> None:
            self.model.eval()
            search(self.model, batch, longest, beam_size=width, beam_alpha=1.0)

        return run

    def _batch(self, source: Tensor, words: Tensor | None) -> Any:
        """Make its batch of sentences padded on the left and their translations."""
        from joeynmt.batch import Batch as JoeyBatch

        lengths = (source != PAD).sum(1)
        shifted = [row[row != PAD] for row in source]
        padded = torch.nn.utils.rnn.pad_sequence(shifted, batch_first=True, padding_value=PAD)
        target = None
        if words is not None:
            starts = torch.full_like(words[:, :1], START)
            target = _renumbered(torch.cat([starts, words], 1))
        batch = JoeyBatch(
            src=_renumbered(padded),
            src_length=lengths,
            src_prompt_mask=None,
            trg=target,
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=self.model.pad_index,
            eos_index=END,
        )
        batch.sort_by_src_length()
        return batch


def _renumbered(ids: Tensor) -> Tensor:
    """Exchange padding and unknown words, whose numbers are the other way round there."""
    return torch.where(ids == PAD, UNKNOWN, torch.where(ids == UNKNOWN, PAD, ids))
