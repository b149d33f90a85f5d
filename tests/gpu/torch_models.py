#!/usr/bin/env python3
"""PyTorch's side of the GPU benchmarks: the example graphs' training steps on the same shapes, in FP32 without TF32.

    torch_models.py NAME eager|compiled     prints the median step in microseconds, and how many kernels, copies and
                                            fills a step gives the GPU, by PyTorch's own profiler ("-": it did not run)

What a step is: the loss, its gradient, and the optimizer's update, as in examples/models/NAME.py. NAMES maps to tfc's
graph and the batch that both sides use. Timed with CUDA events, as PyTorch's users do."""

import statistics
import sys

# name: (tfc's graph, batch, what tfc-run wants beside: forward only, where a name ends so)
NAMES = {"nmt": ("nmt", 32, ()), "rnnlm_large": ("rnnlm_large", 16, ()), "transformer": ("transformer", 32, ()), "resnet50": ("resnet50", 32, ()),
         "alexnet": ("alexnet", 128, ()), "alexnet_forward": ("alexnet", 128, ("--fetch", "loss:0"))}


def lstm():
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5000, 1024)
            self.drop = nn.Dropout(0.25)
            self.lstm = nn.LSTM(1024, 1024, num_layers=2, dropout=0.25)
            self.out = nn.Linear(1024, 5000)

        def forward(self, words):
            x, _ = self.lstm(self.drop(self.table(words)).transpose(0, 1))
            return self.out(self.drop(x)).transpose(0, 1).reshape(-1, 5000)

    model = Model().cuda()
    words = torch.randint(5000, (16, 20), device="cuda")
    targets = torch.randint(5000, (320,), device="cuda")
    return model, (words,), targets, torch.optim.SGD(model.parameters(), 1.0), 10.0


def nmt():
    import torch
    from torch import nn
    batch, length, vocabulary, width = NAMES["nmt"][1], 20, 8000, 512

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(vocabulary, 256), nn.Embedding(vocabulary, 256)
            self.encoder, self.decoder = (nn.LSTM(256, width, num_layers=2, batch_first=True) for _ in range(2))
            self.memory, self.query, self.combine = (nn.Linear(n, width, bias=False) for n in (width, width, 2 * width))
            self.score = nn.Parameter(torch.empty(width).uniform_(-0.08, 0.08))
            self.out = nn.Linear(width, vocabulary)

        def forward(self, source, target):
            memory, state = self.encoder(self.source(source))
            query, _ = self.decoder(self.target(target), state)
            # [batch, target, source, width]; the graph's decoder attends to each target word in turn
            scores = (self.score * torch.tanh(self.memory(memory)[:, None] + self.query(query)[:, :, None])).sum(-1)
            context = torch.softmax(scores, -1) @ memory
            return self.out(torch.tanh(self.combine(torch.cat([context, query], -1)))).reshape(-1, vocabulary)

    model = Model().cuda()
    words = tuple(torch.randint(vocabulary, (batch, length), device="cuda") for _ in range(2))
    targets = torch.randint(vocabulary, (batch * length,), device="cuda")
    return model, words, targets, torch.optim.Adam(model.parameters(), 1e-3), 5.0


def transformer():
    import torch
    from torch import nn
    batch, length, vocabulary, width, heads, inner = NAMES["transformer"][1], 64, 2000, 512, 8, 2048

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
            self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)

        def forward(self, x):
            y = self.norm1(x)
            q, k, v = (f(y).view(batch, length, heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.output(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.outer(nn.functional.gelu(self.inner(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(0.02 * torch.randn(vocabulary, width))
            self.position = nn.Parameter(0.02 * torch.randn(length, width))
            self.layers = nn.ModuleList(Layer() for _ in range(2))
            self.norm = nn.LayerNorm(width)

        def forward(self, words):
            x = nn.functional.embedding(words, self.table) + self.position
            for layer in self.layers:
                x = layer(x)
            return (self.norm(x) @ self.table.t()).reshape(-1, vocabulary)

    model = Model().cuda()
    words = torch.randint(vocabulary, (batch, length), device="cuda")
    targets = torch.randint(vocabulary, (batch * length,), device="cuda")
    return model, (words,), targets, torch.optim.Adam(model.parameters(), 1e-3, eps=1e-6), 1.0


def pictures(batch, size, classes):
    import torch
    x = torch.randint(256, (batch, 3, size, size), device="cuda", dtype=torch.uint8).contiguous(memory_format=torch.channels_last)
    return (x,), torch.randint(classes, (batch,), device="cuda")


def scaled(x):
    return (x.float() - 127.5) / 127.5


def resnet50():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            def cb(i, o, k, s=1):
                return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
            self.a, self.b, self.c = cb(before, width, 1), cb(width, width, 3, stride), cb(width, 4 * width, 1)
            self.short = cb(before, 4 * width, 1, stride) if before != 4 * width or stride > 1 else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.b(torch.relu(self.a(x))))
            return torch.relu(self.c(y) + self.short(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            stages, before = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
            for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
                for i in range(count):
                    stages.append(Block(before, width, stride if i == 0 else 1))
                    before = 4 * width
            self.body, self.out = nn.Sequential(*stages), nn.Linear(2048, 1000)

        def forward(self, x):
            return self.out(self.body(scaled(x)).mean((2, 3)))

    model = Model().cuda().to(memory_format=torch.channels_last)
    x, labels = pictures(NAMES["resnet50"][1], 160, 1000)
    return model, x, labels, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), None


def alexnet():
    import torch
    from torch import nn
    lrn = lambda: nn.LocalResponseNorm(5, 5e-4, 0.75, 2.0)
    body = nn.Sequential(nn.Conv2d(3, 96, 11, 4), nn.ReLU(), lrn(), nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), lrn(),
                         nn.MaxPool2d(3, 2), nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(9216, 4096), nn.ReLU(),
                         nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = body

        def forward(self, x):
            return self.body(scaled(x))

    model = Model().cuda().to(memory_format=torch.channels_last)
    x, labels = pictures(NAMES["alexnet"][1], 227, 1000)
    return model, x, labels, torch.optim.SGD(model.parameters(), 2e-5, momentum=0.9, weight_decay=5e-4), None


def launches(step):
    """Of one step: what CUPTI recorded for PyTorch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    try:
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            step()
            torch.cuda.synchronize()
        return sum(e.device_type == torch.autograd.DeviceType.CUDA for e in p.events())
    except Exception as problem:  # the time is known all the same
        print("PyTorch's profiler:", problem, file=sys.stderr)
        return "-"


def main():
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    name, mode = sys.argv[1], sys.argv[2]
    models = {"nmt": nmt, "rnnlm_large": lstm, "transformer": transformer, "resnet50": resnet50, "alexnet": alexnet, "alexnet_forward": alexnet}
    model, inputs, targets, optimizer, clip = models[name]()
    forward = torch.compile(model) if mode == "compiled" else model

    @torch.no_grad()
    def look():
        torch.nn.functional.cross_entropy(forward(*inputs), targets)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(forward(*inputs), targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    step = look if name.endswith("_forward") else train
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(40):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    print(statistics.median(times), launches(step))


if __name__ == "__main__":
    main()
