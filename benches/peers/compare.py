#!/usr/bin/env python3
"""One training step in straightflow and in PyTorch, side by side.

Runs the two programs in turn, several times, each pinned to the same core, and
prints JSON: the time of a step in each, in ms, and the ratio PyTorch to
straightflow (above 1: straightflow is faster).  The ratio is that of the
medians over the rounds of each program's own median.

    cargo build --release
    pip install torch
    python benches/peers/compare.py --data DIR --core 0

Needs `taskset` (Linux).  DIR holds MNIST's IDX files; both train on them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ESTIMATORS = ["straight-through", "arm"]


def pinned(core, command):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
    command = ["taskset", "-c", str(core), *command]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", required=True)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--python", default=sys.executable, help="with PyTorch")
    parser.add_argument(
        "--straightflow", default=os.path.join(ROOT, "target", "release", "straightflow")
    )
    args = parser.parse_args()

    batch = ["--batch", str(args.batch), "--data", args.data]
    length = ["--steps", "500", "--repetitions", "3", "--warmup", "200"]
    ours, theirs = [], []
    for _ in range(args.rounds):
        script = os.path.join(HERE, "vae_step.py")
        theirs.append(pinned(args.core, [args.python, script, "--estimators", *ESTIMATORS, *batch, *length]))
        command = [args.straightflow, "bench", "--json", "--arch", "linear"]
        ours.append(pinned(args.core, [*command, "--estimators", *ESTIMATORS, *batch, *length]))

    report = {
        "date": ours[0]["date"],
        "cpu": ours[0]["cpu"],
        "model": "linear 784-[200]-784",
        "batch": args.batch,
        "rounds": args.rounds,
        "straightflow": ours[0]["version"],
        "torch": theirs[0]["torch"],
        "torch_adam": [run["adam"] for run in theirs],
        "estimators": {},
    }
    for place, name in enumerate(ESTIMATORS):
        mine = [run["rows"][place]["median_ms"] for run in ours]
        other = [run["estimators"][name]["median_ms"] for run in theirs]
        report["estimators"][name] = {
            "straightflow_ms": round(statistics.median(mine), 4),
            "torch_ms": round(statistics.median(other), 4),
            "ratio": round(statistics.median(other) / statistics.median(mine), 3),
            "straightflow_least_ms": round(min(run["rows"][place]["least_ms"] for run in ours), 4),
            "torch_least_ms": round(min(run["estimators"][name]["min_ms"] for run in theirs), 4),
            "straightflow_rounds_ms": [round(x, 4) for x in mine],
            "torch_rounds_ms": [round(x, 4) for x in other],
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
