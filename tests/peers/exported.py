"""Programs of torch.export. {"schemas": [...]} compares operators with PyTorch's own notation, {"run": [case]} opens
and runs archives, {"make": folder} writes some of small modules; see exported_test.cpp. {"jit": folder} writes the same
as programs of torch.jit, traced and scripted; see jit_test.cpp."""
import json
import re
import sys
import zipfile

import torch
import torch.nn as nn
import torch.nn.functional as F


def tensor(j):
    kind = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}[j["dtype"]]
    return torch.tensor(j["values"], dtype=kind).reshape(j["shape"])


def schema(target):
    name, _, overload = target.removeprefix("aten.").partition(".")
    text = str(getattr(getattr(torch.ops.aten, name), overload)._schema).removeprefix("aten::")
    return re.sub(r"Tensor\([a-z!]+( -> \*)?\)", "Tensor", text)


class Inplace(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.act(self.norm(self.conv(x)))
        y += x.mean(1, keepdim=True)
        return y


class Shapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.register_buffer("scale", torch.linspace(0.5, 2, 6))
        self.register_buffer("shift", torch.ones(6), persistent=False)

    def forward(self, x):  # [batch, 4, 6]
        a, b = x.chunk(2, 1)
        y = torch.cat([a, b * 2 - 1], 2).reshape(x.shape[0], -1)
        y = y.view(x.shape[0] * 4, 6) * self.scale + self.shift
        z = self.fc(y).unflatten(0, (-1, 4)).transpose(1, 2)
        return torch.stack([z[:, :3], z[:, 1:4].flip(2)], 1).flatten(1), z.roll(1, 2).sum((1, 2))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        y = self.embed(x)
        mask = torch.full((5, 5), float("-inf")).triu(1)
        return self.norm(y + self.attend(y, y, y, attn_mask=mask, need_weights=False)[0])


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(4, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Numbers(nn.Module):
    def forward(self, x):
        y = torch.where(x > 0, x, x.exp() - 1).clamp(-0.5, 2)
        y = y / (1 + y.abs()) + (x * x + 1).rsqrt() - 3 * torch.sigmoid(x)
        y = y + x.var(1, keepdim=True) + x.amax(1, keepdim=True) - x.softmax(1).log()
        return torch.maximum(y, x.cumsum(1)), x.argmax(1), (2 - x).remainder(0.7), x.floor() // 2


class Masked(nn.Module):
    def forward(self, x):
        t = torch.arange(x.shape[1])
        mask = (t[None] <= t[:, None]).logical_and(x.new_ones(5, 5) > 0)
        return x.unsqueeze(1).expand(-1, 5, -1).masked_fill(~mask, -1e4).softmax(-1) @ x.unsqueeze(2)


def sequence(*layers):
    return nn.Sequential(*layers)


def modules():
    torch.manual_seed(7)
    x = torch.randn
    yield "mlp", sequence(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4), nn.LogSoftmax(1)), x(3, 6)
    yield "linear3", sequence(nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 2, bias=False)), x(3, 5, 6)
    yield "conv", sequence(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2),
                           nn.Conv2d(8, 8, 3, groups=4, dilation=2, padding="same"), nn.AdaptiveAvgPool2d(1),
                           nn.Flatten(), nn.Dropout(0.3), nn.Linear(8, 5)), x(3, 3, 16, 16)
    yield "conv1", sequence(nn.Conv1d(4, 6, 5, padding=2), nn.BatchNorm1d(6), nn.ELU(), nn.AvgPool1d(2),
                            nn.Flatten(), nn.Linear(24, 3)), x(3, 4, 8)
    yield "conv3", sequence(nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.LeakyReLU(0.1),
                            nn.AvgPool3d(2)), x(3, 2, 4, 4, 4)
    yield "turned", sequence(nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.PReLU(4),
                             nn.Upsample(scale_factor=2, mode="bilinear"), nn.GroupNorm(2, 4),
                             nn.Upsample(scale_factor=2)), x(3, 3, 5, 5)
    yield "windows", sequence(nn.ReflectionPad2d(2), nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.Hardswish(),
                              nn.AdaptiveAvgPool2d((2, 3)), nn.ZeroPad2d((1, 0, 2, 1))), x(3, 2, 9, 7)
    yield "pixels", sequence(nn.PixelUnshuffle(2), nn.Conv2d(4, 4, 1), nn.PixelShuffle(2), nn.Hardtanh()), x(3, 1, 6, 6)
    yield "activations", sequence(nn.Softplus(), nn.Tanh(), nn.CELU(0.7), nn.SELU(), nn.Mish(), nn.Hardsigmoid(),
                                  nn.LogSigmoid(), nn.Softsign(), nn.Softshrink(0.1), nn.ReLU6(),
                                  nn.GELU("tanh")), x(3, 6)
    yield "glu", sequence(nn.Linear(4, 8), nn.GLU(), getattr(nn, "RMSNorm", nn.LayerNorm)(4)), x(3, 4)
    yield "inplace", Inplace(), x(3, 3, 6, 6)
    yield "shapes", Shapes(), x(3, 4, 6)
    yield "attention", Attention(), torch.randint(0, 11, (3, 5))
    yield "encoder", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"), x(3, 5, 8)
    yield "lstm", Recurrent(nn.LSTM), x(3, 5, 4)
    yield "gru", Recurrent(nn.GRU), x(3, 5, 4)
    yield "numbers", Numbers(), x(3, 6)
    yield "masked", Masked(), x(3, 5)
    yield "bilinear", nn.Upsample(size=(7, 5), mode="bilinear", align_corners=True), x(3, 2, 4, 4)
    yield "cubic", nn.Upsample(size=(7, 5), mode="bicubic"), x(3, 2, 4, 4)
    try:
        import torchvision.models as vision
    except ImportError:
        return
    for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "efficientnet_b0",
                 "convnext_tiny"):
        yield name, getattr(vision, name)(weights=None), x(3, 3, 64, 64)


def save_as_2_7(program, path):
    """The archive's layout up to PyTorch 2.7, whose reader is still in torch.export.load."""
    from torch._export.serde.schema import SCHEMA_VERSION
    from torch._export.serde.serialize import serialize

    parts = serialize(program)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", parts.exported_program)
        archive.writestr("serialized_state_dict.pt", parts.state_dict)
        archive.writestr("serialized_constants.pt", parts.constants)
        archive.writestr("serialized_example_inputs.pt", parts.example_inputs)
        archive.writestr("version", ".".join(map(str, SCHEMA_VERSION)))
    torch.export.load(path)


given, result = json.load(sys.stdin), {}
for text in given.get("schemas", []):
    own = schema(text["target"])
    assert own == text["text"], f"{text['text']} is in PyTorch {own}"
with torch.no_grad():
    for i, case in enumerate(given.get("run", [])):
        program = torch.export.load(case["path"])
        model, inputs = program.module(), [tensor(x) for x in case["inputs"]]
        result[f"{i} output"] = model(*inputs).clone()
        if case.get("again"):  # other sizes, and as PyTorch itself goes on with it
            result[f"{i} again"] = model(*[torch.cat([x, x[:1]]) for x in inputs]).clone()
            result[f"{i} core"] = program.run_decompositions().module()(*inputs).clone()
        for name, value in program.state_dict.items():
            result[f"{i} state {name}"] = value.detach()
    for name, module, x in modules() if "make" in given else []:
        module.eval()
        result[f"{name} input"] = x
        fresh = result[f"{name} longer"] = torch.cat([x, x[:1], x[:1]])
        for key, given_x in (("output", x), ("again", fresh)):
            out = module(given_x)
            for k, y in enumerate(out if isinstance(out, tuple) else (out,)):
                result[f"{name} {key} {k}"] = y.clone()
        with torch.enable_grad():
            program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
        torch.export.save(program, f"{given['make']}/{name}.training.pt2")
        torch.export.save(program.run_decompositions(), f"{given['make']}/{name}.core.pt2")
        if name in ("mlp", "shapes", "attention"):
            save_as_2_7(program, f"{given['make']}/{name}.old.pt2")
    for name, module, x in modules() if "jit" in given else []:
        module.eval()
        result[f"{name} input"] = x
        fresh = result[f"{name} longer"] = torch.cat([x, x[:1], x[:1]])
        for how in ("traced", "scripted"):
            program = torch.jit.trace(module, x) if how == "traced" else torch.jit.script(module)
            torch.jit.save(program, f"{given['jit']}/{name}.{how}.pt")
        for key, given_x in (("output", x), ("again", fresh)):
            out = module(given_x)
            for k, y in enumerate(out if isinstance(out, tuple) else (out,)):
                result[f"{name} {key} {k}"] = y.clone()
torch.save(result, sys.argv[-1])
