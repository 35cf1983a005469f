#!/usr/bin/env python3
"""One training step in straightflow, JAX and PyTorch, side by side.

Each round runs a fresh process of each program in turn, all pinned to the same core.  A peer counts
with its best round, straightflow with the median over its rounds of the median of a round.  Writes
Markdown and JSON.

    cargo build --release
    python -m venv venv && venv/bin/pip install -r benches/peers/requirements.txt
    venv/bin/python benches/peers/compare.py --data DIR --core 0 --out results/mine

Needs `taskset` (Linux).  DIR holds MNIST's IDX files; all train on them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Our specification, the peers' method of the same price, and the bars for linear and nonlinear.
ROWS = [
    ("straight-through", "straight-through", 1.4, 1.2),
    ("pwgf", "straight-through", 1.4, 1.2),
    ("second-order-st", "straight-through", 1.4, 1.2),
    ("gumbel-softmax", "gumbel-softmax", 1.15, 1.0),
    ("reinforce:baseline=loo,samples=2", "reinforce-loo", 1.15, 1.0),
    ("arm", "arm", 1.15, 1.0),
    ("disarm", "disarm", 1.15, 1.0),
    ("muprop", "muprop", 1.15, 1.0),
    ("rebar", "rebar", 1.15, 1.0),
    ("relax", "relax", 1.15, 1.0),
    ("debiased-st", "disarm", 1.0, 1.0),
]
PEERS = [("jax_step.py", "scan"), ("jax_step.py", "step"), ("torch_step.py", "eager")]
NAMES = ["JAX, scanned", "JAX, step", "PyTorch"]


def pinned(core, command):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
    command = ["taskset", "-c", str(core), *command]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    return json.loads(done.stdout)


def compare(args, arch):
    length = ["--steps", str(args.steps), "--repetitions", "3", "--batch", str(args.batch)]
    data = ["--data", args.data]
    ours, theirs = [], [[] for _ in PEERS]
    methods = sorted({row[1] for row in ROWS})
    for turn in range(args.rounds):
        for runs, (script, mode) in zip(theirs, PEERS):
            command = [args.python, os.path.join(HERE, script), "--arch", arch, "--mode", mode]
            runs.append(pinned(args.core, [*command, "--methods", *methods, *data, *length]))
        command = [args.straightflow, "bench", "--json", "--arch", arch, "--warmup", "100"]
        specs = [row[0] for row in ROWS]
        ours.append(pinned(args.core, [*command, "--estimators", *specs, *data, *length]))
        print(f"{arch}: round {turn + 1} of {args.rounds}", file=sys.stderr)

    rows = []
    for place, (spec, method, *bars) in enumerate(ROWS):
        mine = [run["rows"][place]["median_ms"] for run in ours]
        peers = {
            name: [run["methods"][method]["least_ms"] for run in runs]
            for name, runs in zip(NAMES, theirs)
        }
        best = min(min(times) for times in peers.values())
        median = statistics.median(mine)
        rows.append({
            "estimator": spec,
            "peer_method": method,
            "straightflow_ms": round(median, 4),
            "straightflow_rounds_ms": [round(x, 4) for x in mine],
            "peers_best_ms": {name: round(min(times), 4) for name, times in peers.items()},
            "peers_rounds_ms": peers,
            "ratio": round(best / median, 3),
            "bar": bars[0 if arch == "linear" else 1],
        })
    versions = {
        "straightflow": ours[0]["version"],
        "jax": theirs[0][0]["jax"],
        "torch": theirs[2][0]["torch"],
    }
    return {
        "arch": arch, "date": ours[0]["date"], "cpu": ours[0]["cpu"], "batch": args.batch,
        "rounds": args.rounds, "versions": versions, "rows": rows,
    }


def markdown(report):
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    lines = [
        f"{report['arch']}, batch {report['batch']}, {report['rounds']} rounds, one pinned core of "
        f"{report['cpu']}, {report['date']}; {versions}. Milliseconds a step.",
        "",
        "| estimator | straightflow | " + " | ".join(NAMES) + " | ratio | bar |",
        "|---|---|" + "---|" * len(NAMES) + "---|---|",
    ]
    for row in report["rows"]:
        peers = " | ".join(f"{row['peers_best_ms'][name]:.3f}" for name in NAMES)
        lines.append(
            f"| `{row['estimator']}` | {row['straightflow_ms']:.3f} | {peers} | "
            f"{row['ratio']:.2f} | {row['bar']} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", required=True)
    parser.add_argument("--arch", nargs="+", choices=["linear", "nonlinear"],
                        default=["linear", "nonlinear"])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200, help="per repetition")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--python", default=sys.executable, help="with JAX and PyTorch")
    parser.add_argument(
        "--straightflow", default=os.path.join(ROOT, "target", "release", "straightflow")
    )
    parser.add_argument("--out", metavar="DIR", help="for compare-ARCH.md and .json")
    args = parser.parse_args()
    for arch in args.arch:
        report = compare(args, arch)
        text = markdown(report)
        print(text)
        if args.out:
            os.makedirs(args.out, exist_ok=True)
            stem = os.path.join(args.out, f"compare-{arch}")
            with open(stem + ".json", "w") as file:
                json.dump(report, file, indent=1)
            with open(stem + ".md", "w") as file:
                file.write(text)


if __name__ == "__main__":
    main()
