//! Three variables and a cost that is not a sum over them: the product of three functions of one
//! variable each, `f(z) = h_1(z_1) h_2(z_2) h_3(z_3)`.
//!
//! The variables are independent, so `d/d natural_j E f = (d/d natural_j E h_j) prod_{i != j} E
//! h_i`, and every answer follows from problems of one variable. The same holds for the expectation
//! of an estimator whose gradient is linear in the cost, and whose sample `y_j` and weight `w_j`
//! depend on the noise of variable `j` only: `E w_j d_j f(y) = (E w_j h_j'(y_j)) prod_{i != j} E
//! h_i(y_i)`. A relaxation evaluates the cost between the hard values, so its `E h_i(y_i)` is that
//! of the relaxed sample. What does not follow from one variable is summed over the joint states.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{FamilyKind, Law};

use crate::gradients::tensor;
use crate::problem::{OBJECTIVES, Problem, TestObjective, problems};
use crate::reference::{Expected, Outcome};

/// Joint states of a lower probability are left out of sums: of less than a million of them, 1e-10
/// together.
const RARE: f64 = 1e-16;

/// A cost of three variables of one family.
#[derive(Clone, Debug)]
pub struct Product {
    /// One problem for each variable.
    pub factors: [Problem; 3],
}

impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, second, third] = &self.factors;
        write!(f, "product of ({first}), ({second}) and ({third})")
    }
}

fn objective(name: &str) -> TestObjective {
    *OBJECTIVES
        .iter()
        .find(|objective| objective.name == name)
        .expect("one of the objectives")
}

impl Product {
    /// The product of the linear, the oscillating and the saturating objective, with parameters
    /// around the family's moderate one.
    pub fn of(kind: FamilyKind) -> Self {
        Self::shifted(kind, 0.0)
    }

    /// The same with few joint states, because a bound is summed over all multisets of them: rates
    /// without an upper end are smaller by a factor `exp(-2.5)`.
    pub fn with_few_states(kind: FamilyKind) -> Self {
        let shift = match problems(kind)[0].family.is_finite() {
            true => 0.0,
            false => -2.5,
        };
        Self::shifted(kind, shift)
    }

    fn shifted(kind: FamilyKind, common: f64) -> Self {
        let moderate = &problems(kind)[0];
        let names = ["linear", "oscillating", "saturating"];
        let factors = [0.0, 0.5, -0.4].map(|shift| {
            // A common shift of all logits would change nothing, so only one of them moves.
            let mut natural = moderate.natural.clone();
            natural[0] += common + shift;
            natural
        });
        let mut factors = factors
            .into_iter()
            .zip(names)
            .map(|(natural, name)| Problem {
                family: moderate.family,
                natural,
                objective: objective(name),
            });
        Self {
            factors: std::array::from_fn(|_| factors.next().expect("three factors")),
        }
    }

    /// The law `[batch, 3, k]` of equal batch elements.
    pub fn law(&self, batch: usize, dtype: DType) -> Law {
        let natural: Vec<f64> = self
            .factors
            .iter()
            .flat_map(|x| x.natural.clone())
            .collect();
        let k = self.factors[0].natural.len();
        let natural = tensor(natural.repeat(batch), [batch, 3, k], dtype);
        Law::new(self.factors[0].family, natural).expect("a valid problem")
    }

    /// The cost `[n, batch]` of samples `[n, batch, 3, k]`.
    pub fn cost(&self, z: Tensor<4>) -> Tensor<2> {
        let [first, second, third] =
            std::array::from_fn(|j| self.factors[j].objective.terms(z.clone().narrow(2, j, 1)));
        (first * second * third).squeeze_dims(&[2, 3])
    }

    /// The exact gradient of the expected cost with respect to all parameters.
    pub fn exact_gradient(&self) -> Vec<f64> {
        let gradients = self.factors.iter().map(Problem::exact_gradient);
        let costs = self.factors.iter().map(Problem::expected_cost);
        let gradients: Vec<Expected> = gradients.map(Expected::exact).collect();
        let costs: Vec<(f64, f64)> = costs.map(|cost| (cost, 0.0)).collect();
        product_rule(&gradients, &costs).mean
    }

    /// The joint states `(z_1, z_2, z_3)` with their probabilities, but for rare ones.
    pub fn states(&self) -> Vec<([Vec<f64>; 3], f64)> {
        let [first, second, third] = self.factors.each_ref().map(Problem::states);
        let mut joint = Vec::new();
        for (a, p) in &first {
            for (b, q) in &second {
                for (c, r) in &third {
                    let probability = p * q * r;
                    if probability > RARE {
                        joint.push(([a.clone(), b.clone(), c.clone()], probability));
                    }
                }
            }
        }
        joint
    }

    /// `h_j(z_j)` of each factor.
    pub fn values_at(&self, z: &[Vec<f64>; 3]) -> [f64; 3] {
        std::array::from_fn(|j| self.factors[j].objective.value_at(&z[j]))
    }

    /// The joint states as outcomes of one draw.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |(z, probability): ([Vec<f64>; 3], f64)| Outcome {
            probability,
            cost: self.values_at(&z).iter().product(),
            // The logarithm of a product of marginals is a sum: one part for each variable.
            score: (0..3).flat_map(|j| self.factors[j].score(&z[j])).collect(),
        };
        self.states().into_iter().map(outcome).collect()
    }
}

/// The product of all entries but one.
pub fn product_of_others(values: &[f64], j: usize) -> f64 {
    let others = values.iter().enumerate().filter(|(i, _)| *i != j);
    others.map(|(_, value)| value).product()
}

/// The gradient `g_j prod_{i != j} c_i` of a product with respect to all parameters, from the
/// gradient `g_j` and the expected cost `c_j` of each factor alone, the latter with its standard
/// error.
///
/// The errors of the parts are added, `|dg_j| prod c_i + |g_j| sum_i |dc_i| prod c_l`: an upper
/// bound of the standard error to first order, also if the parts were sampled with the same
/// numbers.
pub fn product_rule(of_factors: &[Expected], costs: &[(f64, f64)]) -> Expected {
    let means: Vec<f64> = costs.iter().map(|(mean, _)| *mean).collect();
    let (mut mean, mut error) = (Vec::new(), Vec::new());
    for (j, factor) in of_factors.iter().enumerate() {
        let others = product_of_others(&means, j);
        let spread: f64 = (0..costs.len())
            .filter(|i| *i != j)
            .map(|i| {
                let mut means = means.clone();
                means[i] = costs[i].1;
                product_of_others(&means, j).abs()
            })
            .sum();
        for (g, dg) in factor.mean.iter().zip(&factor.error) {
            mean.push(g * others);
            error.push(dg * others.abs() + g.abs() * spread);
        }
    }
    Expected { mean, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradients::{error, to_vec};
    use straightflow::exact::Exact;

    /// The product rule above is the gradient that the library finds by enumeration, and that of
    /// the sum over joint states.
    #[test]
    fn the_product_rule_is_the_exact_gradient() {
        for kind in FamilyKind::ALL {
            let product = Product::of(*kind);
            let q = product.law(1, DType::F64);
            let exact = Exact::default().gradient(&q, |z| product.cost(z));
            let exact = to_vec(exact.expect("few states"));
            let got = product.exact_gradient();
            assert!(error(&got, &exact) < 1e-11, "{product}: {got:?} {exact:?}");
            assert!(exact.iter().any(|g| g.abs() > 1e-2), "{product}: {exact:?}");

            let mut joint = vec![0.0; exact.len()];
            for outcome in product.outcomes() {
                for (sum, score) in joint.iter_mut().zip(&outcome.score) {
                    *sum += outcome.probability * outcome.cost * score;
                }
            }
            assert!(error(&joint, &exact) < 1e-8, "{product}: {joint:?}");
        }
    }

    /// `1 +- 0.1`, `2 +- 0.2` and so on: relative errors add up.
    #[test]
    fn errors_of_a_product_add_up() {
        let part = |mean: f64, error: f64| Expected {
            mean: vec![mean],
            error: vec![error],
        };
        let parts = [part(1.0, 0.1), part(2.0, 0.0), part(4.0, 0.0)];
        let got = product_rule(&parts, &[(1.0, 0.5), (2.0, 0.2), (-3.0, 0.3)]);
        assert_eq!(got.mean, [-6.0, -6.0, 8.0]);
        for (got, want) in got.error.iter().zip([1.8, 3.6, 4.8]) {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }
}
