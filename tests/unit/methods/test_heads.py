import torch
from torch import nn

from lupi.methods.students import head_like
from lupi.networks.resnet import resnet18
from lupi.networks.vgg import small_vgg


def layers(head: nn.Sequential) -> list[str]:
    return [str(layer) for layer in head if not isinstance(layer, nn.Flatten)]


def test_hidden_layers_are_those_of_the_students_head() -> None:
    net = small_vgg(n_outputs=10, image_size=24, n_hidden=7, dropout=0.3)
    head = head_like(net, torch.rand(2, 1, 24, 24), n_in=64 * 3 * 3, n_out=4)
    assert head(torch.rand(2, 64, 3, 3)).shape == (2, 4)
    assert layers(head) == [
        "Linear(in_features=576, out_features=7, bias=True)",
        "ReLU()",
        "Dropout(p=0.3, inplace=False)",
        "Linear(in_features=7, out_features=7, bias=True)",
        "ReLU()",
        "Dropout(p=0.3, inplace=False)",
        "Linear(in_features=7, out_features=4, bias=True)",
    ]


def test_one_hidden_layer_beside_a_resnet() -> None:
    net = resnet18(n_outputs=10, image_size=8)
    head = head_like(net, torch.rand(2, 3, 8, 8), n_in=5, n_out=1)
    assert [layer.out_features for layer in head if isinstance(layer, nn.Linear)] == [512, 1]


def test_a_network_without_dropout_gets_a_single_layer() -> None:
    assert len(layers(head_like(nn.Linear(6, 2), torch.zeros(2, 6), n_in=6, n_out=3))) == 1
