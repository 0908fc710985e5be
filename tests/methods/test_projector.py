import inspect

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu, normalize

from igcd.encoders.backbone import build_backbone
from igcd.methods.projector import N_HIDDEN, N_PROJECTED, Projector, TailAndProjector


def test_the_width_is_that_of_simgcd():
    assert (N_HIDDEN, N_PROJECTED) == (2048, 256)
    source = inspect.getsource(Projector)  # the other tests of methods have a narrow one
    assert "n_hidden: int = N_HIDDEN" in source and "n_projected: int = N_PROJECTED" in source
    wide = Projector(7, generator=torch.Generator().manual_seed(0), n_hidden=N_HIDDEN)
    linear = [layer for layer in wide.layers if isinstance(layer, nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in linear] == [(2048, 7), (2048, 2048), (256, 2048)]
    assert all(not layer.bias.detach().any() for layer in linear)
    assert all(abs(float(layer.weight.detach().std()) - 0.02) < 0.001 for layer in linear)


def test_projection_equals_its_three_layers():
    projector = Projector(5, generator=torch.Generator().manual_seed(1), n_hidden=4, n_projected=3)
    features = torch.randn(6, 5, generator=torch.Generator().manual_seed(2))
    first, second, third = (layer for layer in projector.layers if isinstance(layer, nn.Linear))
    hidden = gelu(gelu(features @ first.weight.T) @ second.weight.T)
    torch.testing.assert_close(projector(features), normalize(hidden @ third.weight.T, dim=1))


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_projector_is_trained_in_the_precision_of_the_tail(bfloat16):
    backbone = build_backbone("tf_efficientnet_lite0", weights="random", size=64, bfloat16=bfloat16)
    projector = Projector(backbone.n_features, generator=torch.Generator().manual_seed(0), n_hidden=16, n_projected=8)
    model = TailAndProjector(backbone.new_tail(), projector)
    intermediate = backbone.trunk(torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    seen = []
    handle = projector.layers[0].register_forward_hook(lambda _layer, _inputs, result: seen.append(result.dtype))
    z = model(intermediate)[1]
    z.sum().backward()
    exact = projector.eval()(model.tail(intermediate).detach())
    predicted = model.eval()(intermediate)[1]
    handle.remove()
    assert seen[0] == (torch.bfloat16 if bfloat16 else torch.float32) and seen[-1] == torch.float32
    assert z.dtype == predicted.dtype == torch.float32
    torch.testing.assert_close(z.norm(dim=1), torch.ones(4))  # it is normalised in float32
    torch.testing.assert_close(z, exact, rtol=0, atol=0.01 if bfloat16 else 1e-6)
    assert all(parameter.grad.dtype == torch.float32 for parameter in projector.parameters())
