"""What the peers share: the images, the command line, the measurement, the JSON."""

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

import numpy as np

IMAGES, PIXELS, LATENTS, HIDDEN = 55_000, 784, 200, 200
SLOPE, RATE, STATE_RATE, CONTROL = 0.2, 1e-4, 1e-3, 100
LOG_HALF = math.log(0.5)
# The layers of each network, from the image to the logits of the bits and back.
WIDTHS = {
    "linear": ([PIXELS, LATENTS], [LATENTS, PIXELS]),
    "nonlinear": (
        [PIXELS, HIDDEN, HIDDEN, LATENTS],
        [LATENTS, HIDDEN, HIDDEN, PIXELS],
    ),
}
METHODS = [
    "straight-through", "gumbel-softmax", "reinforce-loo", "arm", "disarm",
    "muprop", "rebar", "relax",
]


def load_images(directory):
    """Return (uint8 array of 0 and 1 with one image a row, name of the source)."""
    name = "train-images-idx3-ubyte"
    for suffix, opener in (("", open), (".gz", gzip.open)):
        path = os.path.join(directory or "", name + suffix)
        if directory and os.path.exists(path):
            with opener(path, "rb") as file:
                raw = file.read()
            magic, count, rows, columns = (
                int.from_bytes(raw[i : i + 4], "big") for i in range(0, 16, 4)
            )
            if magic != 0x803 or rows * columns != PIXELS or count < IMAGES:
                sys.exit(f"{path}: not the MNIST training images")
            pixels = np.frombuffer(raw, np.uint8, IMAGES * PIXELS, 16)
            return (pixels > 127).astype(np.uint8).reshape(IMAGES, PIXELS), "mnist"
    if directory:
        print(f"no {name}[.gz] in the given directory: random bits", file=sys.stderr)
    bits = np.random.default_rng(1).random((IMAGES, PIXELS)) < 0.13
    return bits.astype(np.uint8), "random"


def initial_weights(arch, seed):
    """Return a list of (weight, bias) for the encoder and one for the decoder."""
    generator = np.random.default_rng(seed)

    def layer(inputs, outputs):
        limit = math.sqrt(6.0 / (inputs + outputs))
        weight = generator.uniform(-limit, limit, (inputs, outputs))
        return weight.astype(np.float32), np.zeros(outputs, np.float32)

    return [
        [layer(*ends) for ends in zip(widths, widths[1:])] for widths in WIDTHS[arch]
    ]


def arguments(description, modes):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the IDX files")
    parser.add_argument("--arch", choices=WIDTHS, default="linear")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200, help="per repetition")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    args = parser.parse_args()
    if not 1 <= args.batch <= IMAGES:
        parser.error(f"--batch must be 1 to {IMAGES}")
    return args


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def measure(args, versions, source, make_trainer):
    """Time each method and print JSON.  `make_trainer(method)` gives a function that trains so many
    steps and returns the cost of the last one."""
    report = versions | {
        "cpu": cpu_name(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
        "data": source,
        "arch": args.arch,
        "batch": args.batch,
        "mode": args.mode,
        "steps": args.steps,
        "methods": {},
    }
    for method in args.methods:
        train = make_trainer(method)
        first = train(args.steps)  # compiles
        train(args.warmup)
        times = []
        for _ in range(args.repetitions):
            start = time.perf_counter()
            last = train(args.steps)
            times.append(1e3 * (time.perf_counter() - start) / args.steps)
        report["methods"][method] = {
            "median_ms": round(statistics.median(times), 4),
            "least_ms": round(min(times), 4),
            "first_cost": round(first, 1),
            "last_cost": round(last, 1),
        }
    print(json.dumps(report, indent=2))
