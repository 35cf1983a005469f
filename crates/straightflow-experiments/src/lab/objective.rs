//! The costs whose gradients are measured, as functions of one number.

use std::f64::consts::TAU;

use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;

use super::problem::Problem;

/// A cost of the score `s` of a variable with mean `m` and standard deviation `sd`.
#[derive(Clone, Copy, Debug)]
pub struct Objective {
    /// The id in records and the head of a column.
    pub id: &'static str,
    /// The formula, in words of the documentation.
    pub formula: &'static str,
    /// `f(s, m, sd)`, on the tape of `s`.
    function: fn(Tensor<2>, f64, f64) -> Tensor<2>,
}

/// Costs of one variable. The first four are those of the table that the laboratory reproduces; in
/// the last four the derivative of `f` at an integer says little about its values at the next ones.
const OF_ONE: &[Objective] = &[
    Objective {
        id: "linear",
        formula: "2 s + 1",
        function: |s, _, _| s * 2.0 + 1.0,
    },
    Objective {
        id: "quad",
        formula: "(s - t)^2, t = m - .37 sd",
        function: |s, m, sd| (s - (m - 0.37 * sd)).square(),
    },
    Objective {
        id: "cos1.3",
        formula: "cos(1.3 s + .4)",
        function: |s, _, _| (s * 1.3 + 0.4).cos(),
    },
    Objective {
        id: "sigm",
        formula: "sigmoid((s - m - .3 sd) / (.6 max(sd, .7)))",
        function: |s, m, sd| sigmoid((s - (m + 0.3 * sd)) * (0.6 * sd.max(0.7)).recip()),
    },
    Objective {
        id: "aliased",
        formula: "s / 10 - sin(2 pi s) / 3, which is s / 10 at every integer",
        function: |s, _, _| s.clone() * 0.1 - (s * TAU).sin() * (1.0 / 3.0),
    },
    Objective {
        id: "steep",
        formula: "sigmoid(10 (s - m - .3 sd))",
        function: |s, m, sd| sigmoid((s - (m + 0.3 * sd)) * 10.0),
    },
    Objective {
        id: "well",
        formula: "(w^2 - 1)^2 + .3 w, w = (s - m) / max(sd, .7)",
        function: |s, m, sd| {
            let w = (s - m) * sd.max(0.7).recip();
            (w.clone().square() - 1.0).square() + w * 0.3
        },
    },
    STEP,
];

/// The derivative is zero wherever it exists.
const STEP: Objective = Objective {
    id: "step",
    formula: "1 if s > m + .3 sd, else 0",
    function: |s, m, sd| (s - (m + 0.3 * sd)).sign() * 0.5 + 0.5,
};

/// Costs of several bits.
const OF_SEVERAL: &[Objective] = &[
    Objective {
        id: "coupled",
        formula: "s + s^2 / 2",
        function: |s, _, _| s.clone() + s.square() * 0.5,
    },
    OF_ONE[3],
    STEP,
];

/// The costs of a variable.
pub fn objectives(problem: &Problem) -> &'static [Objective] {
    if problem.is_single() {
        OF_ONE
    } else {
        OF_SEVERAL
    }
}

impl Objective {
    /// The cost `[n, batch]` of samples `[n, batch, d, k]` of a variable.
    pub fn cost(&self, problem: &Problem, z: Tensor<4>) -> Tensor<2> {
        let (mean, sd) = problem.moments();
        (self.function)(problem.score(z), mean, sd)
    }
}
