"""x* in PyTorch Lightning: the attached network is a module among others."""

import argparse
from pathlib import Path

import pytorch_lightning as pl
import torch
from plain import make_data, make_net
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import lupi


class Classifier(pl.LightningModule):
    """Train with (x, x*, y), validate with (x, y)."""

    def __init__(self) -> None:
        super().__init__()
        x, xstar, _ = make_data(2)
        self.net = lupi.attach(make_net(), xstar=1, prior=0.5, beta=0.1, example=(x, xstar))

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss under noise, plus the penalty."""
        x, xstar, y = batch
        return self.net.loss(x, y, xstar)

    def test_step(self, batch: list[Tensor]) -> None:
        """Score the student: x alone."""
        x, y = batch
        self.log("accuracy", (self.net.predict(x).argmax(1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Train the network and h* together."""
        return torch.optim.Adam(self.parameters(), lr=0.003)


def main(epochs: int, out: Path) -> None:
    """Train with x*, test without, save the student."""
    pl.seed_everything(0)
    train, (x, _, y) = TensorDataset(*make_data(400)), make_data(2000)
    model = Classifier()
    trainer = pl.Trainer(max_epochs=epochs, logger=False, enable_checkpointing=False)
    trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True))
    (scores,) = trainer.test(model, DataLoader(TensorDataset(x, y), batch_size=500), verbose=False)
    save_file(model.net.student().state_dict(), out)
    print(f"accuracy {scores['accuracy']:.3f}, student in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("student.safetensors"))
    main(**vars(parser.parse_args()))
