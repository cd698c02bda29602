"""`lupi features`: compute vectors of images, for use as x*."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import track

from lupi.cli.output import resumable
from lupi.interface.console import print_message, stderr


def features(
    folder: Annotated[Path, typer.Argument(help="Folder of images.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    network: Annotated[
        str, typer.Option(help="efficientnet-lite0, or package.module:function to build one.")
    ] = "efficientnet-lite0",
    weights: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="A safetensors file to load into the network."),
    ] = None,
    size: Annotated[
        int, typer.Option("--image-size", min=8, help="Height and width of the images.")
    ] = 224,
    scale: Annotated[
        Literal["symmetric", "unit", "imagenet"],
        typer.Option(help="Pixels: -1 to 1, 0 to 1, or ImageNet's mean and deviation."),
    ] = "symmetric",
    threads: Annotated[int, typer.Option(min=1, help="Number of torch threads.")] = 1,
) -> None:
    """Compute a vector for each image of a folder with a pretrained network.

    A vector is the input of the network's last linear layer. The file contains `files` and
    `features` (float16). Use it as `task.xstar`, with `task.images` naming the image of each
    line. If interrupted, run the command again to resume. efficientnet-lite0 needs
    `pip install 'lupi[features]'`.

    Example: `lupi features flickr30k-images --out vectors.npz`
    """
    import torch

    from lupi.loaders.xstar.image_vectors import list_images, write_vectors
    from lupi.networks.pretrained import image_encoder, load_network

    torch.set_num_threads(threads)
    names = list_images(folder)
    encode = image_encoder(load_network(network, weights), scale)
    about = f"{network} {weights or ''} {size} {scale}"
    work = write_vectors(folder, names, encode, size, about, out)
    n_bad = 0
    with resumable():
        for problem in track(work, "images", total=len(names), console=stderr):
            if problem is not None:
                n_bad += 1
                print_message(problem)
    print_message(f"{len(names) - n_bad} vectors in {out}")
