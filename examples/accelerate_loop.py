"""x* with Hugging Face accelerate: `accelerate launch accelerate_loop.py` for many processes."""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from plain import make_data, make_net
from safetensors.torch import save_file
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import lupi


def main(epochs: int, out: Path) -> None:
    """Train with x*, test without, save the student."""
    set_seed(0)
    (x, xstar, y), (test_x, _, test_y) = make_data(400), make_data(2000)
    accelerator = Accelerator()

    # With an example, all weights are there before they are shared between processes.
    net = lupi.attach(make_net(), xstar=1, prior=0.5, beta=0.1, example=(x, xstar))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    loader = DataLoader(TensorDataset(x, xstar, y), batch_size=64, shuffle=True)
    model, optimizer, loader = accelerator.prepare(net, optimizer, loader)

    for _ in range(epochs):
        for batch_x, batch_xstar, batch_y in loader:
            output, penalty = model(batch_x, batch_xstar)
            loss = F.cross_entropy(output, batch_y) + penalty.mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()

    if accelerator.is_main_process:
        predicted = net.predict(test_x.to(accelerator.device)).argmax(1).cpu()
        save_file(net.student().state_dict(), out)
        print(f"accuracy {(predicted == test_y).float().mean():.3f}, student in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("student.safetensors"))
    main(**vars(parser.parse_args()))
