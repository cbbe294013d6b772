# Architectures of torchvision, timm and transformers with random weights, exported to ONNX, and what gradients a step
# of theirs has: in f32, and in f64 for what rounding is. Nothing is fetched.
import copy
import importlib
import json
import os
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported

import torch

warnings.filterwarnings("ignore")


def of_torchvision(name):
    vision = importlib.import_module("torchvision.models")
    size = {"alexnet": 224, "vit": 64, "swin_t": 64}.get(name, 32)  # the pool of the first makes whole windows of it
    if name == "vit":  # vit_b_16 in small: the same layers, fewer of them
        module = vision.VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64,
                                          mlp_dim=128, num_classes=10)
    elif name == "googlenet":
        module = vision.googlenet(weights=None, aux_logits=False, init_weights=False, num_classes=10)
    else:
        module = getattr(vision, name)(weights=None, num_classes=10)
    return module, torch.randn(2, 3, size, size)


# What these need beside a number of classes to take an image of 64 x 64.
of_that_size = {"vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224",
                "xcit_nano_12_p16_224"}


def of_timm(name):
    timm = importlib.import_module("timm")
    options = {"img_size": 64} if name in of_that_size else {}
    return timm.create_model(name, pretrained=False, num_classes=10, **options), torch.randn(2, 3, 64, 64)


class Hidden(torch.nn.Module):
    """The first of what a model of transformers gives."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        if x.is_floating_point():
            return self.model(x, return_dict=False)[0]
        return self.model(x, attention_mask=torch.ones_like(x), return_dict=False)[0]


def of_transformers(name):
    library = importlib.import_module("transformers")
    words = {"vocab_size": 99}
    encoder = dict(words, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                   max_position_embeddings=32)
    options = {
        "Bert": encoder, "Roberta": encoder, "Electra": encoder, "MPNet": encoder,
        "Albert": dict(encoder, embedding_size=16),
        "DistilBert": dict(words, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=32),
        "GPT2": dict(words, n_embd=32, n_layer=2, n_head=4, n_positions=32),
        "GPTNeoX": encoder, "Phi": encoder,
        "OPT": dict(words, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
                    max_position_embeddings=32, word_embed_proj_dim=32),
        "Llama": dict(encoder, num_key_value_heads=2), "Mistral": dict(encoder, num_key_value_heads=2),
        "Qwen2": dict(encoder, num_key_value_heads=2),
        "T5Encoder": dict(words, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        "ViT": dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=64),
        "ConvNext": dict(depths=[1, 1, 2, 1], hidden_sizes=[8, 16, 32, 64]),
        "ResNet": dict(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1]),
        "Segformer": dict(hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 8]),
    }[name]
    maker = {"T5Encoder": ("T5Config", "T5EncoderModel")}.get(name, (name + "Config", name + "Model"))
    config = getattr(library, maker[0])(**options)
    for dropout in ("dropout_rate", "attention_dropout", "resid_pdrop"):
        if hasattr(config, dropout):
            setattr(config, dropout, 0.0)
    config.use_cache = False
    model = getattr(library, maker[1])._from_config(config, attn_implementation="eager")
    images = {"ViT": 32, "ConvNext": 64, "ResNet": 64, "Segformer": 64}
    x = torch.randn(2, 3, images[name], images[name]) if name in images else torch.randint(3, 99, (2, 12))
    return Hidden(model), x


def kinks():
    """How near values come to where an activation's slope jumps, beside the mean of their tensor."""
    from torch.utils._python_dispatch import TorchDispatchMode  # an old PyTorch need not have it to be told of the rest

    aten = torch.ops.aten
    places = {aten.relu: (0,), aten.relu_: (0,), aten.hardtanh: (0, 6), aten.hardtanh_: (0, 6),
              aten.hardswish: (-3, 3), aten.hardswish_: (-3, 3), aten.hardsigmoid: (-3, 3), aten.hardsigmoid_: (-3, 3)}

    class Kinks(TorchDispatchMode):
        nearest = 1.0

        def __torch_dispatch__(self, function, types, args=(), named=None):
            for place in places.get(function.overloadpacket, ()):
                near = (args[0] - place).abs().min() / args[0].abs().mean()
                self.nearest = min(self.nearest, near.item())
            return function(*args, **(named or {}))

    return Kinks()


def clear_of_kinks(module, x):
    """Samples of the size of x none of whose activations is within rounding of a kink. One value on its other side, of
    two millions in a resnet101, changes gradients by some percent: PyTorch's own of 32 and of 64 bits differ so."""
    best, margin = x, 0
    for _ in range(12 if x.is_floating_point() else 0):
        with torch.no_grad(), kinks() as seen:
            module(x)
        if seen.nearest > margin:
            best, margin = x, seen.nearest
        if margin > 2e-6:
            break
        x = torch.randn_like(x)
    return best


def gradients(module, x, weights):
    y = module(x)
    (y * weights).mean().backward()  # of the squares the last norm of a model would leave no gradient
    return y.detach(), {key: p.grad for key, p in module.named_parameters() if p.grad is not None}


given, result = json.load(sys.stdin), {}
library = {"torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers}[given["library"]]
try:
    importlib.import_module(given["library"])
except ImportError:
    result["not installed"] = torch.zeros(1)
for name in given["names"] if not result else []:
    torch.manual_seed(0)
    module, x = library(name)
    module.eval()
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.any():  # a head that begins with zeros would give nothing to compare
                parameter.normal_(0, 0.02)
        x = clear_of_kinks(module, x)
        weights = torch.randn_like(module(x))
    torch.onnx.export(module, (x,), os.path.join(given["folder"], name + ".onnx"), dynamo=False, opset_version=17,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    truth = copy.deepcopy(module).double()
    result[f"{name} input"], result[f"{name} weights"] = x, weights
    exact = x.double() if x.is_floating_point() else x
    for to, (y, all) in ((" ", gradients(module, x, weights)), (" f64 ", gradients(truth, exact, weights.double()))):
        result[f"{name}{to}output"] = y
        for key, gradient in all.items():
            result[f"{name}{to}gradient {key}"] = gradient
torch.save(result, sys.argv[-1])
