"""What runs the network: PyTorch, or OpenVINO, which is twice as fast on an Intel processor and needs no GPU."""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.encoders.encoder import Encoder
from igcd.encoders.views import plain_views, to_tensor
from igcd.errors import IgcdError
from igcd.types import Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import FrozenEncoder, PhotoEncoder

EngineName = Literal["torch", "openvino"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def photo_encoder(encoder: Encoder, engine: EngineName) -> PhotoEncoder:
    """The pretrained backbone as it comes, run by an engine. Features agree to 0.001, so they share one key."""
    return FrozenEncoder(encoder) if engine == "torch" else OpenVinoEncoder(encoder)


class OpenVinoEncoder:
    """The same network compiled by OpenVINO for the CPU, in float32."""

    def __init__(self, encoder: Encoder) -> None:
        self._normalization, self.size = encoder.backbone.normalization, encoder.transform.size
        self.key = FrozenEncoder(encoder).key
        self._network = _compiled(encoder.backbone.cpu(), self.size)

    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        inputs = plain_views(to_tensor(pixels, "cpu"), self.size, self._normalization)
        found = torch.from_numpy(np.array(self._network(inputs.contiguous().numpy())[0]))
        return np.asarray(normalize(found, dim=1).numpy(), dtype=np.float32)


def _compiled(network: nn.Module, size: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - OpenVINO is untyped
    try:
        import openvino  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise IgcdError(
            "--engine openvino needs the package openvino, it is not installed; pip install 'igcd[openvino]', or take "
            "--engine torch"
        ) from None
    example: Tensor = torch.zeros(2, 3, size, size)
    with torch.no_grad():
        model = openvino.convert_model(network.eval(), example_input=example, input=[-1, 3, size, size])
    settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(model, "CPU", settings)
