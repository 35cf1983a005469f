#!/usr/bin/env python3
"""Time of one training step of an autoencoder with 200 bits in JAX, on the CPU.

The model, the cost, the optimiser and the methods are those of `straightflow bench`; the README says
what a step contains.  `--mode step` compiles one step and calls it in a loop; `--mode scan` compiles
a loop over all steps of a repetition, so that Python is not part of the time at all.

    taskset -c 0 python jax_step.py --data DIR --arch linear --mode scan
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax import lax

import common
from common import CONTROL, LATENTS, LOG_HALF, PIXELS, RATE, SLOPE, STATE_RATE

constant = lax.stop_gradient


def network(layers, x):
    for place, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        if place + 1 < len(layers):
            x = jnp.where(x < 0, SLOPE * x, x)
    return x


def log_bernoulli(logits, x):
    return (x * logits - jax.nn.softplus(logits)).sum(-1)


class Model:
    """The cost f(z) = log q(z | x) - log p(z) - log p(x | z) and what the methods make of it."""

    def __init__(self, arch):
        # The linear model sees signs, the nonlinear one the bits themselves.
        self.signed = arch == "linear"

    def seen(self, bits):
        return 2 * bits - 1 if self.signed else bits

    def logits(self, params, x):
        return network(params[0], self.seen(x))

    def likelihood(self, params, z, x):
        return log_bernoulli(network(params[1], self.seen(z)), x)

    def cost(self, params, logits, z, x):
        prior = LATENTS * LOG_HALF
        return log_bernoulli(logits, z) - prior - self.likelihood(params, z, x)

    def straight_through(self, params, state, key, x):
        logits = self.logits(params, x)
        p = jax.nn.sigmoid(logits)
        hard = (jax.random.uniform(key, p.shape) < p).astype(p.dtype)
        z = constant(hard - p) + p
        return self.cost(params, constant(logits), z, x).mean()

    def gumbel_softmax(self, params, state, key, x):
        logits = self.logits(params, x)
        u = jax.random.uniform(key, logits.shape, minval=1e-7, maxval=1 - 1e-7)
        z = jax.nn.sigmoid((logits + jnp.log(u) - jnp.log1p(-u)) / 0.5)
        return self.cost(params, logits, z, x).mean()

    def reinforce_loo(self, params, state, key, x):
        """Two draws of each image; the cost of one is the baseline of the other."""
        logits = self.logits(params, x)
        p = constant(jax.nn.sigmoid(logits))
        z = (jax.random.uniform(key, (2, *p.shape)) < p).astype(p.dtype)
        f = self.cost(params, constant(logits), z, x)
        signal = constant(f - f[::-1])
        return f.mean() + surrogate((signal * log_bernoulli(logits, z)).mean())

    def pair(self, params, key, x, weight):
        logits = self.logits(params, x)
        fixed = constant(logits)
        u = jax.random.uniform(key, logits.shape)
        z = jnp.stack([u > jax.nn.sigmoid(-fixed), u < jax.nn.sigmoid(fixed)])
        z = z.astype(logits.dtype)
        f = self.cost(params, fixed, z, x)
        difference = constant(f[0] - f[1])[:, None] * weight(u, z, fixed)
        return f.mean() + surrogate((difference * logits).sum() / len(x))

    def arm(self, params, state, key, x):
        return self.pair(params, key, x, lambda u, z, logits: u - 0.5)

    def disarm(self, params, state, key, x):
        def weight(u, z, logits):
            return 0.5 * (z[0] - z[1]) * jax.nn.sigmoid(jnp.abs(logits))

        return self.pair(params, key, x, weight)

    def muprop(self, params, state, key, x):
        logits = self.logits(params, x)
        fixed = constant(logits)
        p = jax.nn.sigmoid(fixed)
        frozen = constant(params)
        at_mean, back = jax.vjp(lambda z: self.cost(frozen, fixed, z, x), p)
        slope = back(jnp.ones_like(at_mean))[0]
        z = (jax.random.uniform(key, p.shape) < p).astype(p.dtype)
        f = self.cost(params, fixed, z, x)
        signal = constant(f - at_mean - (slope * (z - p)).sum(-1))
        score = (signal * log_bernoulli(logits, z)).mean()
        path = (constant(slope * p * (1 - p)) * logits).sum() / len(x)
        return f.mean() + surrogate(score + path)

    def relaxed(self, logits, key):
        """Relaxed samples, the hard ones, and 1 - d z~ / d logit of z~ drawn given the hard ones."""
        u = jax.random.uniform(key, logits.shape, minval=1e-7, maxval=1 - 1e-7)
        p = jax.nn.sigmoid(logits)
        z = logits + jnp.log(u) - jnp.log1p(-u)
        hard = (z > 0).astype(z.dtype)
        return z, hard, jnp.where(hard > 0, (1 - p) / u, p / (1 - u)), p

    def controlled(self, params, key, x, control):
        """The estimate with control variate c, and the variance that c is trained on."""
        logits = self.logits(params, x)
        fixed = constant(logits)
        z, hard, weight, p = self.relaxed(fixed, key)
        f = self.cost(params, fixed, hard, x)
        c, back = jax.vjp(lambda z: control(fixed, z), z)
        slope = back(jnp.ones_like(c))[0]
        g = (constant(f) - c)[:, None] * (hard - p) + weight * slope
        along = (constant(g) * logits).sum() / len(x)
        return f.mean() + surrogate(along + (g**2).mean())

    def rebar(self, params, state, key, x):
        frozen = constant(params)

        def control(logits, z):
            relaxed = jax.nn.sigmoid(z / jnp.exp(state["temperature"]))
            return state["eta"] * self.cost(frozen, logits, relaxed, x)

        return self.controlled(params, key, x, control)

    def relax(self, params, state, key, x):
        def control(logits, z):
            (weight, bias), (last, shift) = state["control"]
            hidden = jnp.concatenate([self.seen(x), z], -1) @ weight + bias
            return (jnp.tanh(hidden) @ last + shift)[:, 0]

        return self.controlled(params, key, x, control)


def surrogate(scalar):
    """Zero, with the gradient of the scalar."""
    return scalar - constant(scalar)


def initial_state(method):
    if method == "rebar":
        return {"temperature": jnp.log(0.5), "eta": jnp.float32(1.0)}
    if method == "relax":
        first, second = jax.random.split(jax.random.key(3))
        return {"control": [
            (0.05 * jax.random.normal(first, (PIXELS + LATENTS, CONTROL)), jnp.zeros(CONTROL)),
            (0.05 * jax.random.normal(second, (CONTROL, 1)), jnp.zeros(1)),
        ]}
    return {}


def adam(rate, tree, gradients, moments, time):
    root = jnp.sqrt(1 - 0.999**time)
    step, epsilon = rate * root / (1 - 0.9**time), 1e-8 * root
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradients)
    tree = jax.tree.map(
        lambda p, m, v: p - step * m / (jnp.sqrt(v) + epsilon), tree, first, second
    )
    return tree, (first, second)


def make_trainer(args, images, method):
    model = Model(args.arch)
    objective = getattr(model, method.replace("-", "_"))
    params = jax.tree.map(jnp.asarray, common.initial_weights(args.arch, 1))
    state = initial_state(method)
    zeros = lambda tree: jax.tree.map(jnp.zeros_like, tree)
    key = jax.random.key(1)

    def step(carry, rows):
        params, state, moments, state_moments, time, key = carry
        key, own = jax.random.split(key)
        x = images[rows].astype(jnp.float32)
        cost, (gradients, of_state) = jax.value_and_grad(objective, (0, 1))(params, state, own, x)
        time = time + 1
        params, moments = adam(RATE, params, gradients, moments, time)
        state, state_moments = adam(STATE_RATE, state, of_state, state_moments, time)
        return (params, state, moments, state_moments, time, key), cost

    one = jax.jit(step, donate_argnums=0)
    all_steps = jax.jit(lambda carry, rows: lax.scan(step, carry, rows), donate_argnums=0)
    pair = lambda tree: (zeros(tree), zeros(tree))
    carry = (params, state, pair(params), pair(state), jnp.float32(0), key)
    shuffle = jax.jit(lambda key: jax.random.permutation(key, len(images)))
    orders = iter(range(10**9))

    def train(steps):
        nonlocal carry
        rows = []
        while sum(len(r) for r in rows) < steps:
            order = shuffle(jax.random.key(next(orders)))
            whole = len(images) // args.batch
            rows.append(order[: whole * args.batch].reshape(whole, args.batch))
        rows = jnp.concatenate(rows)[:steps]
        if args.mode == "scan":
            carry, costs = all_steps(carry, rows)
            return float(costs[-1])
        for batch in rows:
            carry, cost = one(carry, batch)
        return float(cost)

    return train


def main():
    args = common.arguments(__doc__, ["scan", "step"])
    # One scan is compiled for each number of steps: the warm-up takes as many.
    args.warmup = args.steps
    images, source = common.load_images(args.data)
    images = jnp.asarray(images)
    common.measure(
        args, {"jax": jax.__version__}, source, lambda method: make_trainer(args, images, method)
    )


if __name__ == "__main__":
    main()
