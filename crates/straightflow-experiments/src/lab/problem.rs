//! The variables whose gradients are measured, in the canonical form of the library.

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::distribution::{Family, FamilyKind, Law};

/// A variable of one family with fixed parameters.
///
/// Costs see it through one number, the score `s = sum_j a_j z_j`: the value itself for one ordered
/// variable, the number of the category for a one-hot vector, a weighted sum for several bits.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// The id in records, such as `poisson-5`.
    pub id: &'static str,
    /// The name in tables, such as `Pois(5)`.
    pub label: &'static str,
    /// The family.
    pub family: Family,
    /// The means of the coordinates, the probabilities of one categorical variable, or the weights
    /// `exp(logit)` of the items of a subset.
    pub means: &'static [f64],
    /// The weights `a` of the score, one for each mean.
    pub weights: &'static [f64],
}

/// The variables of the laboratory. The first four are those of the table that it reproduces.
pub const PROBLEMS: &[Problem] = &[
    Problem {
        id: "bernoulli-0.2",
        label: "Bern(.2)",
        family: Family::Bernoulli,
        means: &[0.2],
        weights: &[1.0],
    },
    Problem {
        id: "poisson-0.5",
        label: "Pois(.5)",
        family: Family::Poisson,
        means: &[0.5],
        weights: &[1.0],
    },
    Problem {
        id: "poisson-5",
        label: "Pois(5)",
        family: Family::Poisson,
        means: &[5.0],
        weights: &[1.0],
    },
    Problem {
        id: "poisson-50",
        label: "Pois(50)",
        family: Family::Poisson,
        means: &[50.0],
        weights: &[1.0],
    },
    Problem {
        id: "binomial-7-0.4",
        label: "Binom(7, .4)",
        family: Family::Binomial { trials: 7 },
        means: &[2.8],
        weights: &[1.0],
    },
    Problem {
        id: "geometric-4",
        label: "NB(r = 1, mean 4)",
        family: Family::NegativeBinomial { dispersion: 1.0 },
        means: &[4.0],
        weights: &[1.0],
    },
    Problem {
        id: "categorical-5",
        label: "Cat(.3, .1, .35, .2, .05)",
        family: Family::Categorical,
        means: &[0.3, 0.1, 0.35, 0.2, 0.05],
        weights: &[0.0, 1.0, 2.0, 3.0, 4.0],
    },
    Problem {
        id: "bits-10",
        label: "10 bits",
        family: Family::Bernoulli,
        means: &[0.5, 0.2, 0.7, 0.35, 0.9, 0.1, 0.6, 0.45, 0.8, 0.25],
        weights: &[1.0, -0.5, 0.3, 0.8, -1.2, 0.6, 0.2, -0.9, 0.4, 1.1],
    },
    Problem {
        id: "geometric-0.8",
        label: "Geom(mean .8)",
        family: Family::Geometric,
        means: &[0.8],
        weights: &[1.0],
    },
    Problem {
        id: "subset-2-of-5",
        label: "Subset of 2 from 5",
        family: Family::Subset { size: 2 },
        means: &[0.3, 0.1, 0.35, 0.2, 0.05],
        weights: &[0.0, 1.0, 2.0, 3.0, 4.0],
    },
    Problem {
        id: "rounded-0.8",
        label: "0.8 rounded to halves",
        family: Family::Rounded {
            step: 0.5,
            min: None,
            max: None,
        },
        means: &[0.8],
        weights: &[1.0],
    },
];

impl Problem {
    /// How many variables it has. A vector is one.
    pub fn variables(&self) -> usize {
        self.shape()[0]
    }

    /// The family without its fixed numbers.
    pub fn kind(&self) -> FamilyKind {
        self.family.kind()
    }

    /// Whether the variable has one coordinate, and so the costs of one number.
    pub(super) fn is_single(&self) -> bool {
        self.variables() == 1
    }

    /// The coordinates `d` and the categories `k`.
    fn shape(&self) -> [usize; 2] {
        match self.family.is_vector() {
            true => [1, self.means.len()],
            false => [self.means.len(), 1],
        }
    }

    /// The law with a batch of equal elements, in double precision.
    pub fn law(&self, batch: usize) -> Law {
        let [d, k] = self.shape();
        let means = TensorData::new(self.means.repeat(batch), [batch, d, k]);
        let means = Tensor::from_data(means, (&Device::flex(), DType::F64));
        let law = match self.family {
            Family::Subset { .. } => Law::new(self.family, means.log()),
            Family::Rounded { .. } => Law::new(self.family, means),
            _ => Law::from_means(self.family, means),
        };
        law.expect("a valid problem")
    }

    /// The score `[n, batch]` of samples `[n, batch, d, k]`.
    pub(super) fn score(&self, z: Tensor<4>) -> Tensor<2> {
        let [d, k] = self.shape();
        let weights = TensorData::new(self.weights.to_vec(), [1, 1, d, k]);
        let weights = Tensor::<4>::from_data(weights, (&Device::flex(), DType::F64));
        (z * weights).sum_dims(&[2, 3]).squeeze_dims(&[2, 3])
    }

    /// The mean and the standard deviation of the score.
    pub fn moments(&self) -> (f64, f64) {
        if let Family::Subset { .. } = self.family {
            let law = self.law(1);
            let weights = TensorData::new(self.weights.to_vec(), [1, 1, self.weights.len()]);
            let weights = Tensor::<3>::from_data(weights, (&Device::flex(), DType::F64));
            let mean: f64 = (law.mean() * weights.clone()).sum().into_scalar();
            let variance: f64 = (law.chain(weights.clone()) * weights).sum().into_scalar();
            return (mean, variance.sqrt());
        }
        let pairs = self.means.iter().zip(self.weights);
        let mean: f64 = pairs.clone().map(|(m, a)| m * a).sum();
        let variance: f64 = match self.family {
            Family::Categorical => pairs.map(|(p, a)| p * (a - mean).powi(2)).sum(),
            _ => pairs.map(|(m, a)| a * a * self.variance(*m)).sum(),
        };
        (mean, variance.sqrt())
    }

    /// The variance of an ordered coordinate with a mean.
    fn variance(&self, mean: f64) -> f64 {
        self.coordinate(mean).0
    }

    /// `dm / d natural` of each coordinate of an ordered family; `None` for a vector, whose gradients
    /// stay those with respect to the logits.
    pub(super) fn chain(&self) -> Option<Vec<f64>> {
        if self.family.is_vector() {
            return None;
        }
        let means = self.means.iter();
        Some(means.map(|mean| self.coordinate(*mean).1).collect())
    }

    /// Variance and chain factor of an ordered coordinate with a mean.
    fn coordinate(&self, mean: f64) -> (f64, f64) {
        // Any natural parameter will do: the mean is set afterwards.
        let Some(law) = self.family.count_law(0.0) else {
            let law = self.law(1);
            let [variance, factor] = [law.variance(), law.chain_factor()];
            return (variance.into_scalar(), factor.into_scalar());
        };
        let law = law.with_mean(mean);
        (law.variance(), law.chain_factor())
    }
}
