"""One rank of a training run by PyTorch's DistributedDataParallel over Gloo.

    RANK=r WORLD_SIZE=n MASTER_ADDR=a MASTER_PORT=p ddp_train.py NETWORK SKIPPED_STEPS STEPS [BATCH]
"""

import json
import math
import os
import sys
import time

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    """A causal block that normalises before each of its two branches."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))

    def attention(self, x):
        batch, tokens, width = x.shape
        head = width // self.heads
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(head)
        if not hasattr(self, "mask"):
            self.mask = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        mixed = torch.softmax(scores.masked_fill(self.mask, -math.inf), -1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Transformer(nn.Module):
    def __init__(self, vocabulary, tokens, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(4)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions)))


def mlp(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convolution():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def make_task(name):
    """The network, its input and target in memory, the batch of one rank."""
    samples = 2048
    if name == "transformer":
        ids = torch.randint(1000, (256, 129))
        return Transformer(1000, 128, 256), ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), 8
    classes = torch.randint(10, (samples,))
    if name == "conv":
        return convolution(), torch.randn(samples, 1, 28, 28), classes, 64
    widths = {"mlp": (784, 512, 256, 10), "wide-mlp": (784, 4096, 2048, 10)}[name]
    return mlp(*widths), torch.randn(samples, 784), classes, 64


def peak_rss_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main():
    name, skipped, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rank = int(os.environ["RANK"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo")
    net, inputs, targets, batch = make_task(name)
    if len(sys.argv) > 4:
        batch = int(sys.argv[4])
    net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    batches = len(inputs) // batch
    for step in range(skipped + steps):
        if step == skipped:
            started = time.monotonic()
        start = step % batches * batch
        optimizer.zero_grad()
        output = net(inputs[start:start + batch])
        loss = torch.nn.functional.cross_entropy(
            output.flatten(0, -2), targets[start:start + batch].flatten())
        loss.backward()
        optimizer.step()
        if step == 0:
            first_step_at = time.monotonic()
    rate = steps * batch / (time.monotonic() - started)
    print(json.dumps({"samples_per_second": rate, "first_step_at": first_step_at,
                      "peak_rss_bytes": peak_rss_bytes()}), flush=True)
    torch.distributed.destroy_process_group()


main()
