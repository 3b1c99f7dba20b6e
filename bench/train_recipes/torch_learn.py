"""Trains in PyTorch what bench_train_recipes wrote to a folder: the forward ops of a step, first weights, batches.

    torch_learn.py FOLDER        prints the loss of every step

Each op is one function over tensors; gradients are PyTorch's. Updates are written out, as ops.h defines them.
"""

import json
import math
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

SGD, MOMENTUM, ADAM, ADAMW = range(4)
WORD = (1 << 64) - 1


def mix(x):
    """The finaliser of splitmix64, over an array of uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def fold(value, word):
    return mix(value * np.uint64(0x9E3779B97F4A7C15) + word + np.uint64(1))


def keep_mask(seed, step, counter, shape, rate):
    with np.errstate(over="ignore"):
        zero = np.zeros(1, np.uint64)
        stream = fold(fold(zero, np.uint64(step)), np.uint64(counter))
        start = fold(mix(zero + np.uint64((seed ^ 0x7469646573) & WORD)), stream)
        bits = fold(start, np.arange(math.prod(shape), dtype=np.uint64))
    unit = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy((unit >= np.float32(rate)).astype(np.float32)).reshape(shape)


def find_array(header, name):
    """A state's array in a checkpoint, which has the names of PyTorch's libraries; and whether its matrix lies the other way round."""
    for there in (name, "features." + name):
        if there in header:
            return header[there], False
    there = "transformer." + name.replace("wte.positions", "wpe.weight")
    return header[there], len(header[there]["shape"]) == 2 and not name.startswith("wte.")


class Network:
    def __init__(self, folder):
        with open(f"{folder}/network.jsonl", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        self.head = lines[0]
        self.states = [line for line in lines if "state" in line]
        self.ops = [line for line in lines if "op" in line]
        self.weights = self.read_weights(f"{folder}/weights")
        self.step = 0

    def read_weights(self, path):
        with open(path, "rb") as f:
            data = f.read()
        (length,) = struct.unpack("<Q", data[:8])
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        weights = {}
        for state in self.states:
            entry, transposed = find_array(header, state["state"])
            begin, end = entry["data_offsets"]
            array = np.frombuffer(body[begin:end], np.float32).reshape(entry["shape"])
            array = np.ascontiguousarray(array.T) if transposed else array.copy()
            if array.size == array.shape[0]:
                array = array.reshape(-1)  # biases and scales
            weights[state["tensor"]] = torch.from_numpy(array).requires_grad_()
        return weights

    def forward(self, values, labels):
        head, at = self.head, dict(self.weights)
        at[head["input"]], at[head["label"]] = values, labels
        for op in self.ops:
            name = op["op"].replace("-", "_").replace(".", "_")
            results = getattr(self, "do_" + name)(op, *(at[i] for i in op["reads"] if i in at))
            at.update(zip(op["writes"], results if isinstance(results, tuple) else (results,)))
        return at[head["loss"]]

    # ---- ops ----
    def do_reorder(self, op, a):
        return a

    def do_conv(self, op, x, w, b=None):
        return F.conv2d(x.reshape(op["x"]), w, b, op["stride"], op["pad"])

    def do_upconv(self, op, x, w, b):
        return F.conv_transpose2d(x, w.transpose(0, 1), b, op["stride"])

    def do_fc(self, op, x, w, b=None):
        return F.linear(x.reshape(op["x"][0], -1), w.reshape(w.shape[0], -1), b)

    def do_bn(self, op, x, scale, shift):
        return F.batch_norm(x, None, None, scale, shift, True, 0.1, op["eps"])

    def do_bn_stats(self, op, *reads):
        return ()

    def do_relu(self, op, x):
        return F.relu(x)

    def do_maxpool(self, op, x):
        return F.max_pool2d(x, op["kernel"], op["stride"], op["pad"])

    def do_avgpool(self, op, x):
        return F.avg_pool2d(x, op["kernel"], op["stride"], op["pad"])

    def do_add(self, op, a, b):
        return a + b

    def do_concat(self, op, *parts):
        return torch.cat(parts, 1)

    def do_dropout(self, op, x):
        kept = keep_mask(self.head["seed"], self.step, op["counter"], x.shape, op["drop_rate"])
        return x * kept / (1 - op["drop_rate"])

    def do_lrn(self, op, x):
        size, alpha, beta, k = op["lrn"]
        return F.local_response_norm(x, size, alpha, beta, k)

    def do_softmax_loss(self, op, x, label):
        x = x.reshape(op["x"]).movedim(1, -1).reshape(-1, op["x"][1])
        return x, F.cross_entropy(x, label.reshape(-1))

    def do_head_loss(self, op, x, w, label):
        scores = F.linear(x.reshape(label.numel(), -1), w.reshape(w.shape[0], -1))
        return None, None, F.cross_entropy(scores, label.reshape(-1))  # gradients come by themselves

    def do_embedding(self, op, tokens, table, positions=None):
        rows = table.reshape(table.shape[0], -1)[tokens.long()]
        if positions is not None:
            rows = rows + positions.reshape(positions.shape[0], -1)[: tokens.shape[1]]
        return rows.reshape(-1, rows.shape[-1])

    def do_layernorm(self, op, x, scale, shift):
        return F.layer_norm(x, x.shape[-1:], scale, shift, op["eps"])

    def do_gelu(self, op, x):
        return F.gelu(x, approximate="tanh")

    def do_attention(self, op, qkv):
        heads, context = op["heads"], op["context"]
        parts = qkv.reshape(-1, context, 3, heads, qkv.shape[-1] // (3 * heads))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(qkv.shape[0], -1)

    def do_slice(self, op, a):
        return a[op["step"] :: op["steps"]]

    def do_stack(self, op, *parts):
        return torch.stack(parts, 1).reshape(-1, parts[0].shape[-1])

    def do_lstm(self, op, x, *rest):
        h, c, w, b = rest if op["prev"] else (None, None, *rest)
        w = w.reshape(w.shape[0], -1)
        gates = F.linear(torch.cat((x, h), 1) if op["prev"] else x, w if op["prev"] else w[:, : x.shape[1]], b)
        i, f, g, o = gates.chunk(4, 1)
        cell = torch.sigmoid(i) * torch.tanh(g)
        if op["prev"]:
            cell = cell + torch.sigmoid(f) * c
        return torch.sigmoid(o) * torch.tanh(cell), cell, gates


class Updates:
    def __init__(self, head, weights):
        self.head, self.weights = head, weights
        self.m = [torch.zeros_like(w) for w in weights]
        self.v = [torch.zeros_like(w) for w in weights]

    @torch.no_grad()
    def apply(self, step):
        h, t = self.head, step + 1
        rate = h["rate"] * (t / (h["warmup"] + 1) if step < h["warmup"] else 1)
        scale = 1.0
        if h["clip"] > 0:
            norm = math.sqrt(sum(float((w.grad.double() ** 2).sum()) for w in self.weights))
            scale = min(1.0, h["clip"] / (norm + 1e-6))
        for w, m, v in zip(self.weights, self.m, self.v):
            g = w.grad * scale
            if h["optimizer"] == ADAMW:
                w *= 1 - rate * h["decay"]
            else:
                g = g + h["decay"] * w
            if h["optimizer"] == SGD:
                w -= rate * g
            elif h["optimizer"] == MOMENTUM:
                m.mul_(0.9).add_(g)
                w -= rate * m
            else:
                m.mul_(0.9).add_(g, alpha=0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                w -= rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
            w.grad = None


def main():
    torch.set_num_threads(1)  # the machine may be busy: threads that spin would wait for each other
    folder = sys.argv[1]
    net = Network(folder)
    head = net.head
    updates = Updates(head, list(net.weights.values()))
    sample = np.dtype([("values", "<f4", (head["values"],)), ("labels", "<i4", (head["labels"],))])
    batches = np.fromfile(f"{folder}/batches", sample)
    for step in range(head["steps"]):
        net.step = step
        batch = batches[step * head["batch"] : (step + 1) * head["batch"]]
        values = torch.from_numpy(batch["values"].copy())
        first = net.ops[0]
        if first["op"] != "embedding":
            values = values.reshape([op for op in net.ops if op["op"] != "reorder"][0]["x"])
        loss = net.forward(values, torch.from_numpy(batch["labels"].astype(np.int64)))
        loss.backward()
        updates.apply(step)
        print(f"{float(loss.detach()):.7f}", flush=True)


if __name__ == "__main__":
    main()
