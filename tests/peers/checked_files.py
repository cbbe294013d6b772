# Files of a model that somebody saved by mistake: in training mode, and beside an optimizer that lacks its last layer.
import json
import os
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
folder = json.load(sys.stdin)["folder"]


def path(name):
    return os.path.join(folder, name)


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5),
                          torch.nn.Linear(8, 2))
x = torch.randn(5, 4)
for name, parameters in (("all", list(net.parameters())), ("some", [*net[0].parameters(), *net[1].parameters()])):
    optimizer = torch.optim.Adam(parameters)
    net(x).sum().backward()
    optimizer.step()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path(name + ".pt"))
for mode, to in ((True, "training"), (False, "evaluation")):
    net.train(mode)
    torch.jit.script(net).save(path(to + ".script.pt"))
    torch.jit.trace(net, x, check_trace=False).save(path(to + ".trace.pt"))
torch.save({"made": torch.ones(1)}, sys.argv[-1])
