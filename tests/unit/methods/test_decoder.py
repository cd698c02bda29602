import torch
from torch import nn

from lupi.methods.regions.multitask_mask import Decoder


def test_stages_enlarge_to_the_sizes_and_halve_the_channels() -> None:
    decoder = Decoder(80, [(6, 6), (12, 12), (25, 30)], n_convs=2)
    shapes = []
    for module in decoder.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda m, i, out: shapes.append(tuple(out.shape[1:])))
    assert decoder(torch.rand(2, 80, 3, 3)).shape == (2, 1, 25, 30)
    assert shapes == [
        *[(40, 6, 6)] * 2,
        *[(20, 12, 12)] * 2,
        *[(16, 25, 30)] * 2,
        (1, 25, 30),
    ]
