#!/usr/bin/env python3
"""Time of one training step of an autoencoder with 200 bits in PyTorch, on one CPU thread.

The model, the cost, the optimiser and the methods are those of `straightflow bench`; the README says
what a step contains.  Adam is PyTorch's fused one.

    taskset -c 0 python torch_step.py --data DIR --arch linear
"""

import torch
from torch.nn.functional import leaky_relu, softplus

import common
from common import CONTROL, LATENTS, LOG_HALF, PIXELS, RATE, SLOPE, STATE_RATE


def log_bernoulli(logits, x):
    return (x * logits - softplus(logits)).sum(-1)


def surrogate(scalar):
    """Zero, with the gradient of the scalar."""
    return scalar - scalar.detach()


class Model:
    """The cost f(z) = log q(z | x) - log p(z) - log p(x | z) and what the methods make of it."""

    def __init__(self, arch, method):
        # The linear model sees signs, the nonlinear one the bits themselves.
        self.signed = arch == "linear"
        tensor = lambda x: torch.from_numpy(x).requires_grad_()
        self.networks = [
            [(tensor(w), tensor(b)) for w, b in layers]
            for layers in common.initial_weights(arch, 1)
        ]
        self.state = {}
        if method == "rebar":
            self.state = {
                "temperature": torch.tensor(0.5).log().requires_grad_(),
                "eta": torch.tensor(1.0).requires_grad_(),
            }
        if method == "relax":
            inputs = PIXELS + LATENTS
            self.state = {
                "weight": (0.05 * torch.randn(inputs, CONTROL)).requires_grad_(),
                "bias": torch.zeros(CONTROL).requires_grad_(),
                "last": (0.05 * torch.randn(CONTROL, 1)).requires_grad_(),
                "shift": torch.zeros(1).requires_grad_(),
            }

    def parameters(self):
        return [p for layers in self.networks for layer in layers for p in layer]

    def network(self, index, x):
        layers = self.networks[index]
        for place, (weight, bias) in enumerate(layers):
            x = torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], -1)
            if place + 1 < len(layers):
                x = leaky_relu(x, SLOPE)
        return x

    def seen(self, bits):
        return 2 * bits - 1 if self.signed else bits

    def logits(self, x):
        return self.network(0, self.seen(x))

    def cost(self, logits, z, x):
        likelihood = log_bernoulli(self.network(1, self.seen(z)), x)
        return log_bernoulli(logits, z) - LATENTS * LOG_HALF - likelihood

    def straight_through(self, x):
        logits = self.logits(x)
        p = logits.sigmoid()
        hard = p.detach()
        z = (torch.rand_like(hard) < hard) + p - hard
        return self.cost(logits.detach(), z, x).mean()

    def gumbel_softmax(self, x):
        logits = self.logits(x)
        u = torch.rand_like(logits).clamp(1e-7, 1 - 1e-7)
        z = ((logits + u.logit()) / 0.5).sigmoid()
        return self.cost(logits, z, x).mean()

    def reinforce_loo(self, x):
        """Two draws of each image; the cost of one is the baseline of the other."""
        logits = self.logits(x)
        p = logits.detach().sigmoid()
        z = (torch.rand(2, *p.shape) < p).to(p.dtype)
        f = self.cost(logits.detach(), z, x)
        signal = (f - f.flip(0)).detach()
        return f.mean() + surrogate((signal * log_bernoulli(logits, z)).mean())

    def pair(self, x, weight):
        logits = self.logits(x)
        fixed = logits.detach()
        u = torch.rand_like(fixed)
        z = torch.stack((u > torch.sigmoid(-fixed), u < torch.sigmoid(fixed))).to(x.dtype)
        f = self.cost(fixed, z, x)
        values = f.detach()
        difference = (values[0] - values[1]).unsqueeze(1) * weight(u, z, fixed)
        return f.mean() + surrogate((difference * logits).sum() / len(x))

    def arm(self, x):
        return self.pair(x, lambda u, z, logits: u - 0.5)

    def disarm(self, x):
        return self.pair(x, lambda u, z, logits: 0.5 * (z[0] - z[1]) * logits.abs().sigmoid())

    def slope(self, logits, z, x, function):
        """The cost of relaxed samples and its gradient with respect to them."""
        value = function(logits, z)
        (slope,) = torch.autograd.grad(value.sum(), z, create_graph=bool(self.state))
        return value, slope

    def muprop(self, x):
        logits = self.logits(x)
        fixed = logits.detach()
        p = fixed.sigmoid()
        mean = p.clone().requires_grad_()
        value, slope = self.slope(fixed, mean, x, lambda logits, z: self.cost(logits, z, x))
        z = (torch.rand_like(p) < p).to(p.dtype)
        f = self.cost(fixed, z, x)
        signal = (f - value - (slope * (z - p)).sum(-1)).detach()
        score = (signal * log_bernoulli(logits, z)).mean()
        path = ((slope * p * (1 - p)) * logits).sum() / len(x)
        return f.mean() + surrogate(score + path)

    def controlled(self, x, control):
        """The estimate with control variate c, and the variance that c is trained on."""
        logits = self.logits(x)
        fixed = logits.detach()
        p = fixed.sigmoid()
        u = torch.rand_like(p).clamp(1e-7, 1 - 1e-7)
        z = (fixed + u.logit()).requires_grad_()
        hard = (z.detach() > 0).to(p.dtype)
        weight = torch.where(hard > 0, (1 - p) / u, p / (1 - u))
        f = self.cost(fixed, hard, x)
        c, slope = self.slope(fixed, z, x, control)
        g = (f.detach() - c).unsqueeze(1) * (hard - p) + weight * slope
        state = list(self.state.values())
        # Of the variance, only the gradient of what is learned is wanted.
        learned = torch.autograd.grad(g.square().mean(), state)
        for parameter, gradient in zip(state, learned):
            parameter.grad = gradient
        return f.mean() + surrogate((g.detach() * logits).sum() / len(x))

    def rebar(self, x):
        def control(logits, z):
            relaxed = (z / self.state["temperature"].exp()).sigmoid()
            return self.state["eta"] * self.cost(logits, relaxed, x)

        return self.controlled(x, control)

    def relax(self, x):
        def control(logits, z):
            own = self.state
            hidden = torch.cat((self.seen(x), z), -1) @ own["weight"] + own["bias"]
            return (hidden.tanh() @ own["last"] + own["shift"]).squeeze(-1)

        return self.controlled(x, control)


def batches(images, size):
    """Yield float mini-batches for ever, reshuffled each epoch."""
    while True:
        for rows in torch.randperm(len(images)).split(size):
            if len(rows) == size:
                yield images.index_select(0, rows).float()


def make_trainer(args, images, method):
    model = Model(args.arch, method)
    objective = getattr(model, method.replace("-", "_"))
    adam = lambda parameters, rate: torch.optim.Adam(parameters, lr=rate, eps=1e-8, fused=True)
    optimisers = [adam(model.parameters(), RATE)]
    if model.state:
        optimisers.append(adam(list(model.state.values()), STATE_RATE))
    data = batches(images, args.batch)

    def train(steps):
        for _ in range(steps):
            optimisers[0].zero_grad(set_to_none=True)
            cost = objective(next(data))
            cost.backward()
            for optimiser in optimisers:
                optimiser.step()
        return cost.item()

    return train


def main():
    args = common.arguments(__doc__, ["eager"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, source = common.load_images(args.data)
    images = torch.from_numpy(images)
    common.measure(
        args,
        {"torch": torch.__version__},
        source,
        lambda method: make_trainer(args, images, method),
    )


if __name__ == "__main__":
    main()
