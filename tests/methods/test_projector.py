import inspect

import torch
from torch import nn
from torch.nn.functional import gelu, normalize

from igcd.methods.projector import N_HIDDEN, N_PROJECTED, Projector


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
