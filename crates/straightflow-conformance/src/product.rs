//! Three variables and a cost that is not a sum over them: the product of three functions of one
//! variable each, `f(z) = h_1(z_1) h_2(z_2) h_3(z_3)`.
//!
//! The variables are independent, so `d/d natural_j E f = (d/d natural_j E h_j) prod_{i != j} E h_i`,
//! and every answer follows from problems of one variable. The same holds for the expectation of an
//! estimator whose samples are hard, whose gradient is linear in the cost, and whose weight for
//! variable `j` depends on the noise of that variable only: then
//! `E w(z_j) d_j f = (E w(z_j) h_j'(z_j)) prod_{i != j} E h_i`. A relaxation evaluates the cost
//! between the hard values, so its other factors are not `E h_i`; it is checked with one variable.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{FamilyKind, Law};

use crate::gradients::tensor;
use crate::problem::{OBJECTIVES, Problem, TestObjective, problems};

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
        let moderate = &problems(kind)[0];
        let names = ["linear", "oscillating", "saturating"];
        let factors = [0.0, 0.5, -0.4].map(|shift| {
            // A common shift of all logits would change nothing, so only one of them moves.
            let mut natural = moderate.natural.clone();
            natural[0] += shift;
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

    /// The gradient by all parameters, from that of each factor alone.
    pub fn gradient(&self, of_factors: Vec<Vec<f64>>) -> Vec<f64> {
        let costs: Vec<f64> = self.factors.iter().map(Problem::expected_cost).collect();
        let mut gradient = Vec::new();
        for (j, factor) in of_factors.into_iter().enumerate() {
            let others: f64 = (0..3).filter(|i| *i != j).map(|i| costs[i]).product();
            gradient.extend(factor.into_iter().map(|g| g * others));
        }
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradients::{Canonical, error, to_vec};
    use straightflow::distribution::Distribution;
    use straightflow::exact::Exact;

    /// The product rule above is the gradient that the library finds by enumeration.
    #[test]
    fn the_product_rule_is_the_exact_gradient() {
        for kind in FamilyKind::ALL {
            let product = Product::of(*kind);
            let q = Canonical::from_law(product.law(1, DType::F64));
            let exact = Exact::default().gradient(&q, |z, _| product.cost(z));
            let exact = to_vec(exact.expect("few states"));
            let got = product.gradient(
                product
                    .factors
                    .iter()
                    .map(Problem::exact_gradient)
                    .collect(),
            );
            assert!(error(&got, &exact) < 1e-11, "{product}: {got:?} {exact:?}");
            assert!(exact.iter().any(|g| g.abs() > 1e-2), "{product}: {exact:?}");
        }
    }
}
