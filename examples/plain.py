"""x* in a plain PyTorch loop: a network with dropout, and not a line of it changed.

x is a noisy measurement of a point; x* says how noisy, which nobody knows at test time.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

import lupi


def make_data(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return x (n, 20), its privileged noise level x* (n, 1) and labels (n,)."""
    point = torch.randn(n, 20)
    level = 3 * torch.rand(n, 1)
    return point + level * torch.randn(n, 20), level, (point[:, :3].sum(1) > 0).long()


def make_net() -> nn.Module:
    """Return a network as anybody would write it."""
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2))


def main(epochs: int, out: Path) -> None:
    """Train with x*, test without, save the student."""
    torch.manual_seed(0)
    (x, xstar, y), (test_x, _, test_y) = make_data(400), make_data(2000)

    net = lupi.attach(make_net(), xstar=1, prior=0.5, beta=0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            output, penalty = net(x[rows], xstar[rows])
            loss = F.cross_entropy(output, y[rows]) + penalty.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    accuracy = (net.predict(test_x).argmax(1) == test_y).float().mean()
    save_file(net.student().state_dict(), out)
    print(f"accuracy {accuracy:.3f}, student in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("student.safetensors"))
    main(**vars(parser.parse_args()))
