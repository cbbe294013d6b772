"""Opens programs of TorchScript and runs them, as torch.jit.load() leaves them and frozen. A case is
{"path", "inputs"}; see torchscript_test.cpp."""
import json
import sys

import torch


def tensor(j):
    kind = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}[j["dtype"]]
    return torch.tensor(j["values"], dtype=kind).reshape(j["shape"])


result = {}
with torch.no_grad():
    for i, case in enumerate(json.load(sys.stdin)):
        model = torch.jit.load(case["path"])
        inputs = [tensor(x) for x in case["inputs"]]
        result[f"{i} output"] = model(*inputs).clone()
        result[f"{i} frozen"] = torch.jit.freeze(model.eval())(*inputs).clone()
        for name, value in model.state_dict().items():
            result[f"{i} state {name}"] = value
torch.save(result, sys.argv[-1])
