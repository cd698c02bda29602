"""Students as ONNX files, written by torch and read by onnxruntime (extra `lupi[onnx]`)."""

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.limits import read_regular

INPUT, OUTPUT = "x", "output"
MAX_BYTES = 2**31
"""Of a file; larger ones can't be ONNX, whose format is protobuf."""
EXTERNAL_DATA = re.compile(rb"(?:\n|\x8a\x80*\x00)(?:\x08|\x88\x80*\x00)location")
"""How a tensor names the file that contains it: the key `location` of a protobuf entry."""
N_WORDS = 8
"""Of the texts that torch looks at: it takes an LSTM apart word by word."""


def write_onnx(net: nn.Module, x: Tensor, path: Path, metadata: Mapping[str, str]) -> None:
    """Write a network to one file, for any number of rows like those of `x`.

    For word indices (integers), the number of words is variable, too; for pieces of words, that of
    windows and that of pieces.

    torch's metadata of nodes (source files, classes) is removed.
    """
    _require("onnx", "onnxscript")
    import onnx

    names = {0: "batch"}
    if not x.is_floating_point() and x.dim() == 4:
        names |= {1: "windows", 2: "pieces"}
    elif not x.is_floating_point():
        names[1], x = "words", x[:, :N_WORDS].contiguous()
    with _quiet_torch():
        program = torch.onnx.export(
            net.eval(),
            (x,),
            dynamo=True,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes=(dict.fromkeys(names, torch.export.Dim.DYNAMIC),),
            verbose=False,
        )
    assert program is not None  # as dynamo=True
    model = program.model_proto
    graph = model.graph
    for noted in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        noted.ClearField("metadata_props")
        noted.ClearField("doc_string")
    for tensor in graph.initializer:
        tensor.ClearField("metadata_props")
    for place, name in names.items():
        graph.input[0].type.tensor_type.shape.dim[place].dim_param = name
    graph.output[0].type.tensor_type.shape.dim[0].dim_param = names[0]
    del graph.value_info[:]  # intermediate shapes name the batch differently; readers infer them
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model)
    onnx.save_model(model, str(path))


class OnnxNetwork:
    """An ONNX network that is called like a module."""

    def __init__(self, path: Path, n_threads: int = 1) -> None:
        _require("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        options.log_severity_level = 3
        try:
            content = read_regular(path, MAX_BYTES)
            if EXTERNAL_DATA.search(content):
                raise OSError("it refers to other files, which lupi never writes")
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors have no common class
            raise LupiError(f"{path} can't be read as an ONNX student: {_line(error)}") from None
        ends = [[end.name for end in self._session.get_inputs()]]
        ends.append([end.name for end in self._session.get_outputs()])
        if ends != [[INPUT], [OUTPUT]]:
            raise LupiError(
                f"{path} is not a lupi student: expected input {INPUT!r} and output {OUTPUT!r}, "
                f"got {', '.join(ends[0])} and {', '.join(ends[1])}"
            )

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs of rows."""
        try:
            (output,) = self._session.run([OUTPUT], {INPUT: x.numpy()})
            return torch.from_numpy(output)
        except Exception as error:  # of a graph that is not the one lupi wrote
            raise LupiError(f"the ONNX student can't be applied: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def _quiet_torch() -> Iterator[None]:
    """Hide torch's own deprecation warnings, and its note on torchvision."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _require(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            raise LupiError(
                f"ONNX needs {package}, which is not installed: pip install 'lupi[onnx]'"
            )
