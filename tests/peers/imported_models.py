# Twenty architectures of torchvision with random weights, exported to ONNX, and what gradients a step of theirs has.
import io
import json
import os
import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def modules(vision):
    torch.manual_seed(0)
    for name in given["names"]:
        if name == "vit":  # vit_b_16 in small: the same layers, fewer of them
            yield name, vision.VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64,
                                                 mlp_dim=128, num_classes=10)
        elif name == "googlenet":
            yield name, vision.googlenet(weights=None, aux_logits=False, init_weights=False, num_classes=10)
        else:
            yield name, getattr(vision, name)(weights=None, num_classes=10)


given, result = json.load(sys.stdin), {}
try:
    import torchvision.models as vision
except ImportError:
    vision = None
    result["no torchvision"] = torch.zeros(1)
for name, module in modules(vision) if vision else []:
    module.eval()
    size = 224 if name == "alexnet" else 64  # of which its pool makes whole windows
    x = torch.randn(2, 3, size, size)
    torch.onnx.export(module, (x,), os.path.join(given["folder"], name + ".onnx"), dynamo=False, opset_version=17,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    y = module(x)
    y.square().mean().backward()
    result[f"{name} input"] = x
    result[f"{name} output"] = y.detach()
    for key, parameter in module.named_parameters():
        result[f"{name} gradient {key}"] = parameter.grad
torch.save(result, sys.argv[-1])
