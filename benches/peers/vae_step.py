#!/usr/bin/env python3
"""Time of one training step of a Bernoulli VAE in PyTorch, on one CPU thread.

What is measured
    The model is linear, 784-[200]-784: the encoder maps 2x-1 to the logits of
    200 binary latents, the decoder maps 2z-1 to the logits of 784 binary
    pixels, and the prior is uniform (logits fixed at 0).  All in float32.
    The objective is the negative ELBO, f = log q(z|x) - log p(z) - log p(x|z).
    A step is everything that a training loop does for a fresh mini-batch:
    pick the rows (uint8, by a shuffled permutation), convert them to float,
    forward, backward, Adam (lr 1e-4, eps 1e-8).

    straight-through
         One hard sample, back-propagated as if z were sigmoid(logits).  The
         logits inside log q(z|x) are detached (the direct term has mean
         zero), so the encoder learns through z only.
    arm  Augment-REINFORCE-merge: two antithetic samples from one uniform
         draw, both evaluated in one decoder call of twice the batch.  The
         encoder gradient is (f1 - f2)(u - 1/2) / batch; the decoder gradient
         comes from the mean of f over both samples.

    Every estimator does its warm-up steps, then the repetitions alternate
    between the estimators.  Reported are the median and the minimum over the
    repetitions, in ms per step: wall clock, and the process's CPU time, which
    suffers less from other programs on the same core.

How to run it
    pip install torch
    taskset -c 0 python vae_step.py --data DIR

    DIR holds MNIST's train-images-idx3-ubyte, gzipped or not.  The first
    55,000 images are used, pixels above 127 becoming 1.  Without --data, or
    if the file is not there, random bits (13 % ones) of the same shape stand
    in.  The result is printed as JSON.  `--check 2000` trains that long from
    scratch instead of timing, and prints the loss on the way.
"""

import argparse
import datetime
import gzip
import json
import math
import os
import platform
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

IMAGES, PIXELS, LATENTS = 55_000, 784, 200
ADAM_VARIANTS = {
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "plain": {"foreach": False, "fused": False},
}
bce = F.binary_cross_entropy_with_logits


def load_images(directory):
    """Return (uint8 tensor of 0/1 with one image a row, name of the source)."""
    name = "train-images-idx3-ubyte"
    for suffix, opener in (("", open), (".gz", gzip.open)):
        path = os.path.join(directory or "", name + suffix)
        if directory and os.path.exists(path):
            with opener(path, "rb") as file:
                raw = bytearray(file.read())
            magic, count, rows, columns = (
                int.from_bytes(raw[i : i + 4], "big") for i in range(0, 16, 4)
            )
            if magic != 0x803 or rows * columns != PIXELS or count < IMAGES:
                sys.exit(f"{path}: not the MNIST training images")
            pixels = torch.frombuffer(
                raw, dtype=torch.uint8, offset=16, count=IMAGES * PIXELS
            )
            return (pixels > 127).to(torch.uint8).view(IMAGES, PIXELS), "mnist"
    if directory:
        print(f"no {name}[.gz] in the given directory: random bits", file=sys.stderr)
    return (torch.rand(IMAGES, PIXELS) < 0.13).to(torch.uint8), "random"


def batches(images, size):
    """Yield float mini-batches for ever, reshuffled each epoch."""
    while True:
        for rows in torch.randperm(len(images)).split(size):
            if len(rows) == size:
                yield images.index_select(0, rows).float()


class VAE(nn.Module):
    def __init__(self, pixels=PIXELS, latents=LATENTS):
        super().__init__()
        self.encode = nn.Linear(pixels, latents)
        self.decode = nn.Linear(latents, pixels)
        # log p(z) does not depend on z under the uniform prior.
        self.minus_log_prior = latents * math.log(2.0)


def straight_through(vae, x):
    """Return (the loss to differentiate, the negative ELBO)."""
    logits = vae.encode(2 * x - 1)
    p = logits.sigmoid()
    hard = p.detach()
    z = (torch.rand_like(hard) < hard) + p - hard
    minus_log_q = bce(logits.detach(), z, reduction="sum")
    minus_log_likelihood = bce(vae.decode(2 * z - 1), x, reduction="sum")
    loss = (minus_log_likelihood - minus_log_q) / len(x) + vae.minus_log_prior
    return loss, loss.detach()


def arm(vae, x):
    """Return (the surrogate loss to differentiate, the negative ELBO)."""
    logits = vae.encode(2 * x - 1)
    with torch.no_grad():
        u = torch.rand_like(logits)
        z = torch.stack((u > torch.sigmoid(-logits), u < torch.sigmoid(logits)))
        z = z.to(x.dtype)
        minus_log_q = bce(logits.expand_as(z), z, reduction="none").sum(-1)
        signs = 2 * z - 1
    # The two samples are a leading axis of 2; linear layers see 2 * batch rows.
    pixels = vae.decode(signs)
    minus_log_likelihood = bce(pixels, x.expand_as(pixels), reduction="none").sum(-1)
    decoder_loss = minus_log_likelihood.mean()
    with torch.no_grad():
        f = minus_log_likelihood - minus_log_q  # the constant prior cancels
        weights = (f[0] - f[1]).unsqueeze(1) * (u - 0.5)
        elbo = f.mean() + vae.minus_log_prior
    encoder_loss = torch.dot(weights.flatten(), logits.flatten()) / len(x)
    return decoder_loss + encoder_loss, elbo


ESTIMATORS = {"straight-through": straight_through, "arm": arm}


class Trainer:
    """A model with its optimizer and its stream of mini-batches."""

    def __init__(self, estimator, images, batch, adam, compiled=False):
        self.vae = VAE()
        self.optimizer = torch.optim.Adam(
            self.vae.parameters(), lr=1e-4, eps=1e-8, **ADAM_VARIANTS[adam]
        )
        self.data = batches(images, batch)
        self.losses = []
        objective = ESTIMATORS[estimator]
        self.objective = objective
        if compiled:
            self.objective = torch.compile(objective)
            try:
                self.train(1)
            except Exception as error:  # e.g. no C++ compiler
                print(f"--compile ignored: {type(error).__name__}", file=sys.stderr)
                self.objective, compiled = objective, False
        self.compiled = compiled

    def train(self, steps):
        """Train; every 100 steps, read the loss."""
        vae, optimizer, data, objective = (
            self.vae, self.optimizer, self.data, self.objective,
        )
        for step in range(1, steps + 1):
            loss, negative_elbo = objective(vae, next(data))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                self.losses.append(negative_elbo.item())

    def time(self, steps):
        """Return (wall, CPU) time in ms per step."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.train(steps)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return 1e3 * wall / steps, 1e3 * cpu / steps


def fastest_adam(images, batch):
    """Return (name of the fastest variant, CPU ms/step of each) by a short run."""
    trainers = {}
    for name in ADAM_VARIANTS:
        try:
            trainers[name] = Trainer("straight-through", images, batch, name)
            trainers[name].train(50)
        except (RuntimeError, TypeError):  # this version has no such variant
            trainers.pop(name, None)
    best = {name: math.inf for name in trainers}
    for _ in range(5):
        for name, trainer in trainers.items():
            best[name] = min(best[name], trainer.time(100)[1])
    return min(best, key=best.get), {k: round(v, 4) for k, v in best.items()}


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the IDX files")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS,
                        default=list(ESTIMATORS))
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--steps", type=int, default=500, help="per repetition")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=200, help="steps")
    parser.add_argument("--adam", choices=["auto", *ADAM_VARIANTS], default="auto",
                        help="auto: try all, use the fastest")
    parser.add_argument("--compile", action="store_true",
                        help="torch.compile the objective; ignored where that fails")
    parser.add_argument("--check", type=int, metavar="STEPS",
                        help="train so long and print the losses; no timing")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not 1 <= args.batch <= IMAGES:
        parser.error(f"--batch must be 1 to {IMAGES}")

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    images, source = load_images(args.data)
    report = {
        "torch": torch.__version__,
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
        "data": source,
        "batch": args.batch,
    }
    adam = args.adam
    if adam == "auto":
        adam, report["adam_cpu_ms_per_step"] = fastest_adam(images, args.batch)
    report["adam"] = adam

    trainers = {
        name: Trainer(name, images, args.batch, adam, args.compile)
        for name in args.estimators
    }
    report["compiled"] = all(trainer.compiled for trainer in trainers.values())
    if args.check:
        report["loss_every_100_steps"] = {}
        for name, trainer in trainers.items():
            trainer.train(args.check)
            report["loss_every_100_steps"][name] = [round(x, 1) for x in trainer.losses]
        print(json.dumps(report))
        return

    for trainer in trainers.values():
        trainer.train(args.warmup)
    times = {name: [] for name in trainers}
    for _ in range(args.repetitions):
        for name, trainer in trainers.items():
            times[name].append(trainer.time(args.steps))
    report |= {"steps": args.steps, "repetitions": args.repetitions, "estimators": {}}
    for name, pairs in times.items():
        wall, cpu = zip(*pairs)
        report["estimators"][name] = {
            "median_ms": round(statistics.median(wall), 4),
            "min_ms": round(min(wall), 4),
            "median_cpu_ms": round(statistics.median(cpu), 4),
            "min_cpu_ms": round(min(cpu), 4),
            "last_loss": round(trainers[name].losses[-1], 1)
            if trainers[name].losses else None,
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
