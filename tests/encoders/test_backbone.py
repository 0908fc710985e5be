"""Trunk and tail together are the timm model they were cut from."""

import pytest
import torch
from torch import nn

from igcd.encoders.backbone import Adapter, PowerMean, Tail, build_backbone
from igcd.encoders.torchvision_guard import import_timm
from igcd.errors import IgcdError
from igcd.workspace.features import fingerprint

# (model, size, types behind the cut)
FAMILIES = [
    ("resnet18", 64, ["BasicBlock", "BasicBlock"]),
    ("vit_tiny_patch16_224", 224, ["Block", "LayerNorm"]),
    ("vit_tiny_patch16_224", 64, ["Block", "LayerNorm"]),
    ("resnet50_clip", 64, ["BottleneckBlock", "BottleneckBlock", "BottleneckBlock", "Identity"]),
    ("tf_efficientnet_lite0", 64, ["InvertedResidual", "Conv2d", "BatchNormAct2d"]),
    ("convnext_atto", 64, ["ConvNeXtBlock", "Identity"]),
    ("mobilenetv3_small_050", 64, ["InvertedResidual", "ConvBnAct"]),
]


def whole_model(name: str, size: int, seed: int) -> nn.Module:
    """The uncut model, made by timm from the same seed."""
    options = {"dynamic_img_size": True} if name.startswith("vit") and size != 224 else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return import_timm().create_model(name, pretrained=False, num_classes=0, **options).eval()


def lively_model(name: str, size: int) -> nn.Module:
    """The uncut model without timm's zeros: residual branches start at zero and would hide a wrong tail."""
    model = whole_model(name, size, seed=3)
    generator = torch.Generator().manual_seed(4)
    for tensor in model.state_dict().values():
        if tensor.ndim == 1:
            tensor.uniform_(0.5, 1.5, generator=generator)
    return model


def noise(n: int, size: int, seed: int = 5) -> torch.Tensor:
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("name", "size", "behind_cut"), FAMILIES)
def test_tail_of_trunk_is_the_whole_model(tmp_path, name, size, behind_cut):
    whole = lively_model(name, size)
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    backbone = build_backbone(name, weights=tmp_path / "weights.pth", size=size, channels_last=False)
    images = noise(3, size)
    with torch.no_grad():
        assert torch.equal(backbone(images), whole(images))
        assert not torch.equal(backbone.tail(backbone.trunk(images).flip(0)), whole(images))
    assert [type(module).__name__ for module in backbone.tail.blocks] == behind_cut


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
def test_any_number_of_last_blocks_can_be_trained(n_blocks):
    backbone = build_backbone("resnet18", weights="random", size=64, n_blocks=n_blocks, channels_last=False)
    whole = whole_model("resnet18", 64, seed=0)
    images = noise(2, 64)
    with torch.no_grad():
        assert torch.equal(backbone(images), whole(images))
    last = [*whole.layer3, *whole.layer4][-n_blocks:]
    n_expected = sum(parameter.numel() for block in last for parameter in block.parameters())
    assert sum(parameter.numel() for parameter in backbone.new_tail().parameters()) == n_expected


def test_every_parameter_is_in_trunk_or_tail_and_in_one_of_them_only():
    backbone = build_backbone("resnet50_clip", weights="random", size=64)
    n_whole = sum(parameter.numel() for parameter in whole_model("resnet50_clip", 64, 0).parameters())
    assert sum(parameter.numel() for parameter in backbone.parameters()) == n_whole
    assert any("head.q.weight" in name for name, _ in backbone.tail.named_parameters())  # the attention pool is trained


def test_the_pretrained_backbone_stays_as_it_is_while_a_new_tail_learns():
    backbone = build_backbone("tf_efficientnet_lite0", weights="random", size=64)
    images = noise(8, 64)
    before = backbone(images)
    tail = backbone.new_tail()
    intermediate = backbone.trunk(images)
    assert not intermediate.requires_grad
    optimizer = torch.optim.SGD(tail.parameters(), lr=0.1)
    tail(intermediate).square().mean().backward()
    optimizer.step()
    backbone.train()
    assert torch.equal(backbone(images), before)
    assert not torch.equal(tail(intermediate), before)
    assert torch.equal(backbone.new_tail()(intermediate), before)


@pytest.mark.parametrize("freeze", [True, False])
def test_batchnorm_statistics_move_only_when_not_frozen(freeze):
    backbone = build_backbone("tf_efficientnet_lite0", weights="random", size=64, freeze_batchnorm=freeze)
    tail = backbone.new_tail()
    statistics = [m.running_mean.clone() for m in tail.modules() if isinstance(m, nn.BatchNorm2d)]
    intermediate = backbone.trunk(noise(8, 64))
    alone, in_batch = tail(intermediate[:1]), tail(intermediate)[:1]
    moved = [m.running_mean for m in tail.modules() if isinstance(m, nn.BatchNorm2d)]
    assert all(torch.equal(a, b) for a, b in zip(statistics, moved, strict=True)) == freeze
    assert torch.allclose(alone, in_batch, atol=1e-4) == freeze
    assert all(parameter.requires_grad for parameter in tail.parameters())


def test_an_adapter_starts_as_the_identity_and_learns():
    backbone = build_backbone(
        "resnet18", weights="random", size=64, tail="adapter", adapter_width=16, channels_last=False
    )
    images = noise(4, 64)
    embedding = backbone.trunk(images)
    assert torch.equal(embedding, whole_model("resnet18", 64, 0)(images))
    adapter = backbone.new_tail(seed=1)
    assert isinstance(adapter, Adapter)
    assert torch.equal(adapter(embedding), embedding)
    adapter(embedding).sum().backward()
    assert adapter.up.weight.grad.abs().sum() > 0
    assert torch.equal(adapter.down.weight, backbone.new_tail(seed=1).down.weight)
    assert not torch.equal(adapter.down.weight, backbone.new_tail(seed=2).down.weight)


def test_memory_format_changes_no_feature():
    plain, last = (build_backbone("resnet18", weights="random", size=64, channels_last=c) for c in (False, True))
    assert torch.allclose(plain(noise(2, 64)), last(noise(2, 64)), rtol=1e-3, atol=1e-4)
    assert plain.fingerprint == last.fingerprint


def test_the_fingerprint_tells_weights_and_cut_apart():
    def of(**options):
        return build_backbone("resnet18", weights="random", size=64, **options).fingerprint

    assert of() == of()
    assert len({of(), of(seed=1), of(n_blocks=1), of(tail="adapter")}) == 4


def test_building_leaves_the_global_generator_alone():
    state = torch.get_rng_state()
    build_backbone("resnet18", weights="random", size=64, seed=9)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "resnet19"}, "did you mean"),
        ({"name": "hrnet_w18_small"}, "cannot be cut"),
        ({"name": "resnet18", "n_blocks": 8}, "would leave none"),
        ({"name": "resnet18", "n_blocks": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_a_reason(options, message):
    with pytest.raises(IgcdError, match=message):
        build_backbone(weights="random", size=64, **options)


def test_a_tail_can_be_stored_and_loaded():
    backbone = build_backbone("vit_tiny_patch16_224", weights="random", size=64)
    other = build_backbone("vit_tiny_patch16_224", weights="random", size=64, seed=1).new_tail()
    assert isinstance(other, Tail)
    other.load_state_dict(backbone.tail.state_dict())
    intermediate = backbone.trunk(noise(2, 64))
    assert torch.equal(other.eval()(intermediate), backbone.tail(intermediate))


@pytest.mark.parametrize(("name", "n_blocks"), [("resnet10t", 1), ("resnet18", 2), ("resnet50", 3), ("resnetv2_50", 3)])
def test_the_last_stage_of_a_resnet_is_trained(name, n_blocks):
    """Its first block halves the size of the maps, so the trunk's are twice as large."""
    whole = whole_model(name, 64, seed=0)
    last = whole.layer4 if hasattr(whole, "layer4") else whole.stages[-1]
    last = getattr(last, "blocks", last)
    assert len(last) == n_blocks
    backbone = build_backbone(name, weights="random", size=64, channels_last=False)
    n_trained = sum(parameter.numel() for parameter in backbone.new_tail().parameters())
    assert n_trained >= sum(parameter.numel() for parameter in last.parameters())
    assert backbone.trunk(noise(1, 64)).shape[-1] == 4


def test_bfloat16_changes_training_a_little_and_prediction_not_at_all() -> None:
    exact = build_backbone("tf_efficientnet_lite0", weights="random", size=64)
    mixed = build_backbone("tf_efficientnet_lite0", weights="random", size=64, bfloat16=True)
    intermediate = exact.trunk(torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(exact.tail(intermediate), mixed.tail(intermediate))
    trained = [backbone.new_tail() for backbone in (exact, mixed)]
    features = [tail(intermediate) for tail in trained]
    assert features[1].dtype == torch.float32
    assert not torch.equal(*features)
    assert torch.allclose(*features, rtol=0.05, atol=0.02 * float(features[0].detach().abs().max()))
    features[1].square().sum().backward()
    gradients = [parameter.grad for parameter in trained[1].parameters()]
    assert all(gradient is not None and gradient.dtype == torch.float32 for gradient in gradients)
    assert torch.equal(trained[0].eval()(intermediate), trained[1].eval()(intermediate))


def test_power_mean_equals_slow_twin():
    responses = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    pooled = PowerMean()(responses)
    for image in range(2):
        for channel in range(3):
            powers = [max(float(value), 0.0) ** 3 for value in responses[image, channel].flatten()]
            assert float(pooled[image, channel]) == pytest.approx((sum(powers) / 20) ** (1 / 3), abs=1e-4)


def test_power_mean_is_between_mean_and_maximum_and_keeps_what_is_everywhere():
    responses = torch.rand(4, 6, 7, 7, generator=torch.Generator().manual_seed(1))
    pooled = PowerMean()(responses)
    assert (pooled > responses.mean(dim=(2, 3))).all() and (pooled < responses.amax(dim=(2, 3))).all()
    torch.testing.assert_close(PowerMean()(torch.full((1, 2, 3, 3), 0.7)), torch.full((1, 2), 0.7))


def test_pooling_is_part_of_the_tail_and_of_its_digest():
    mean, gem = (build_backbone("resnet18", weights="random", size=64, pool=pool) for pool in ("mean", "gem"))
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert mean.fingerprint == gem.fingerprint  # the trunk is the same, and so is what its cache holds
    assert fingerprint(mean.tail) != fingerprint(gem.tail)
    assert (gem(images) >= mean(images) - 1e-6).all() and not torch.allclose(gem(images), mean(images))


def test_a_model_without_a_map_of_responses_keeps_its_pooling():
    with pytest.raises(IgcdError, match="ends in a map of responses"):
        build_backbone("vit_tiny_patch16_224", weights="random", size=32, pool="gem")
