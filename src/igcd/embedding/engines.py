"""What runs the network: PyTorch, or OpenVINO, which is about 1.5 times as fast on a CPU."""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.backbone import Backbone
from igcd.encoders.encoder import Encoder
from igcd.errors import IgcdError
from igcd.types import Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PART_ON_CPU, FrozenEncoder, PhotoEncoder, in_parts
from igcd.workspace.middle import as_seen

EngineName = Literal["torch", "openvino"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def photo_encoder(encoder: Encoder, engine: EngineName) -> PhotoEncoder:
    """The pretrained backbone as it comes, run by an engine. Features agree to 0.001, so they share one key."""
    return as_seen(encoder, FrozenEncoder(encoder) if engine == "torch" else OpenVinoEncoder(encoder))


class OpenVinoEncoder:
    """The same network compiled by OpenVINO for the CPU, in float32, with normalization as its first step."""

    def __init__(self, encoder: Encoder) -> None:
        self.size = encoder.transform.size
        self.key = FrozenEncoder(encoder).key
        self._network = _compiled(encoder.backbone.cpu(), self.size)

    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        return in_parts(self._encode, pixels, PART_ON_CPU)

    def _encode(self, pixels: Pixels) -> Features:
        found = torch.from_numpy(np.array(self._network(np.ascontiguousarray(pixels))[0]))
        return np.asarray(normalize(found, dim=1).numpy(), dtype=np.float32)


def _compiled(network: Backbone, size: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - OpenVINO is untyped
    try:
        import openvino  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from openvino.preprocess import PrePostProcessor  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise IgcdError(
            "--engine openvino needs the package openvino, it is not installed; pip install 'igcd[openvino]', or take "
            "--engine torch"
        ) from None
    example: Tensor = torch.zeros(2, 3, size, size)
    with torch.no_grad():
        model = openvino.convert_model(network.eval(), example_input=example, input=[-1, 3, size, size])
    takes_pixels = PrePostProcessor(model)
    takes_pixels.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    takes_pixels.input().model().set_layout(openvino.Layout("NCHW"))
    looks = network.normalization
    mean, std = ([255 * value for value in values] for values in (looks.mean, looks.std))
    takes_pixels.input().preprocess().convert_element_type(openvino.Type.f32).mean(mean).scale(std)
    model = takes_pixels.build()
    settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(model, "CPU", settings)
