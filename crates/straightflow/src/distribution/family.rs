//! The list of families, and everything that is made from it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::CountLaw;
use super::formulas::{Formulas as _, Inverse};

/// Makes [`Family`], [`FamilyKind`] and `with_formulas!` of the list below. The first argument is a
/// dollar sign, which a macro cannot write into another one otherwise.
macro_rules! families {
    ($d:tt $(
        $(#[$doc:meta])*
        $module:ident::$Type:ident $({ $( $(#[$field_doc:meta])* $field:ident: $number:ty ),* })?
    ),* $(,)?) => {
        /// A family of discrete distributions with all that is fixed, so that the natural parameter
        /// is the only thing left to learn.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Family {
            $(
                $(#[$doc])*
                $Type $({ $( $(#[$field_doc])* $field: $number ),* })?,
            )*
        }

        /// A family without its fixed numbers: what an estimator supports or does not.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum FamilyKind {
            $(
                #[doc = concat!("See [`Family::", stringify!($Type), "`].")]
                $Type,
            )*
        }

        impl FamilyKind {
            /// Every family.
            pub const ALL: &'static [Self] = &[$( Self::$Type ),*];

            fn module(self) -> &'static str {
                match self {
                    $( Self::$Type => stringify!($module), )*
                }
            }

            /// Variables of the family as tests of all families take them: fixed numbers and the
            /// natural parameters of one variable, first moderate ones, then ones that make a value
            /// rare.
            ///
            /// ```
            /// use straightflow::distribution::FamilyKind;
            ///
            /// for kind in FamilyKind::ALL {
            ///     let (family, natural) = &kind.examples()[0];
            ///     assert_eq!(family.kind(), *kind);
            ///     assert_eq!(natural.len() > 1, family.is_vector());
            /// }
            /// ```
            pub fn examples(self) -> Vec<(Family, Vec<f64>)> {
                match self {
                    $( Self::$Type => super::$module::examples(), )*
                }
            }
        }

        impl Family {
            /// The family without its fixed numbers.
            pub fn kind(&self) -> FamilyKind {
                match self {
                    $( Self::$Type { .. } => FamilyKind::$Type, )*
                }
            }
        }

        /// `with_formulas!(family, formulas => expression)`: the expression with the formulas of
        /// the family, compiled for each one.
        macro_rules! with_formulas {
            ($d family:expr, $d formulas:ident => $d body:expr) => {
                match $d family {
                    $(
                        $d crate::distribution::Family::$Type $({ $($field),* })? => {
                            let $d formulas =
                                $d crate::distribution::$module::formulas($($($field),*)?);
                            $d body
                        }
                    )*
                }
            };
        }
        pub(super) use with_formulas;

        /// The types of all families.
        pub mod all {
            $( pub use super::super::$module::$Type; )*
        }
    };
}

families! {$
    /// 0 or 1; natural parameter: the logit of 1.
    bernoulli::Bernoulli,
    /// One of `k` categories as a one-hot vector; natural parameters: `k` logits.
    categorical::Categorical,
    /// 0, 1, 2, ..; natural parameter: the logarithm of the rate.
    poisson::Poisson,
    /// 0, .., `trials`; natural parameter: the logit of a success.
    binomial::Binomial {
        /// The number of trials.
        trials: u32
    },
    /// 0, 1, 2, ..; natural parameter: the logarithm of the mean.
    negative_binomial::NegativeBinomial {
        /// `r`; the variance is `mean + mean^2 / r`.
        dispersion: f64
    },
    /// 0, 1, 2, .., the failures before a success; natural parameter: the logarithm of the mean.
    geometric::Geometric,
    /// `size` of `m` items as a vector of zeros and ones; natural parameters: `m` logits.
    subset::Subset {
        /// The number of ones.
        size: u32
    },
    /// A number on a lattice, one of the two neighbours; parameter: the mean, which is rounded.
    rounded::Rounded {
        /// The distance of two neighbours.
        step: f64,
        /// The least value, a multiple of the step.
        min: Option<f64>,
        /// The largest value, a multiple of the step.
        max: Option<f64>
    },
}

impl FamilyKind {
    /// The families whose score has a bounded variance: all but [`Rounded`](Self::Rounded).
    pub const WITH_SCORE: &'static [Self] = &[
        Self::Bernoulli,
        Self::Categorical,
        Self::Poisson,
        Self::Binomial,
        Self::NegativeBinomial,
        Self::Geometric,
        Self::Subset,
    ];
}

impl fmt::Display for FamilyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.module().replace('_', "-"))
    }
}

impl Family {
    /// The law of one coordinate with a natural parameter, if it is a count: `None` for a vector,
    /// which is not ordered, and for a number on a lattice.
    pub fn count_law(&self, natural: f64) -> Option<CountLaw> {
        with_formulas!(*self, formulas => formulas.count_law(natural))
    }

    /// Whether a sample is a one-hot vector over categories, rather than one ordered number.
    pub fn is_one_hot(&self) -> bool {
        with_formulas!(*self, formulas => formulas.is_one_hot())
    }

    /// Whether a variable is a vector of several numbers, one-hot or not, rather than one ordered
    /// number.
    pub fn is_vector(&self) -> bool {
        with_formulas!(*self, formulas => formulas.is_vector())
    }

    /// Whether there are finitely many values.
    pub fn is_finite(&self) -> bool {
        with_formulas!(*self, formulas => formulas.is_finite())
    }

    /// Whether every number of a sample is 0 or 1, whatever the fixed numbers are.
    pub(crate) fn is_binary(&self) -> bool {
        with_formulas!(*self, formulas => formulas.is_binary())
    }

    /// Samples by inversion of the distribution function in tensors, where that is short.
    pub(crate) fn inverse(&self) -> Option<Inverse> {
        with_formulas!(*self, formulas => formulas.inverse())
    }

    /// Whether the weight of a unit move of an ordered coordinate depends on the draw.
    pub(crate) fn weighs_draws(&self) -> bool {
        with_formulas!(*self, formulas => formulas.weighs_draws())
    }

    /// The number of trials, if a unit move goes down with probability `z / trials` and up
    /// otherwise.
    pub(crate) fn trials_of_step(&self) -> Option<f64> {
        with_formulas!(*self, formulas => formulas.trials_of_step())
    }

    /// Whether a unit move exchanges two items of a vector.
    pub(crate) fn has_swaps(&self) -> bool {
        with_formulas!(*self, formulas => formulas.has_swaps())
    }

    /// Whether a unit move takes a uniform number, its `side`.
    pub(crate) fn takes_side(&self) -> bool {
        self.trials_of_step().is_some() || self.has_swaps()
    }

    /// The item that is exchanged with an item of a sample of one variable.
    pub(crate) fn partner(&self, natural: &[f64], z: &[f64], item: usize, side: f64) -> usize {
        with_formulas!(*self, formulas => formulas.partner(natural, z, item, side))
    }

    /// `d/d natural E K(x, y)` of a vector `x` of one variable and a point `y`, with the Gaussian
    /// kernel of their distance.
    pub(crate) fn kernel_response(&self, natural: &[f64], y: &[f64], bandwidth: f64) -> Vec<f64> {
        with_formulas!(*self, formulas => formulas.kernel_response(natural, y, bandwidth))
    }

    /// Appends a value of a vector of `k` numbers, by its number.
    pub(crate) fn push_state(&self, number: u64, k: usize, to: &mut Vec<f64>) {
        with_formulas!(*self, formulas => formulas.push_state(number, k, to));
    }

    /// The natural parameter of one mean, kept where it is finite.
    pub(crate) fn natural_of_mean(&self, mean: f64) -> f64 {
        with_formulas!(*self, formulas => formulas.natural_of_mean(mean))
    }
}
