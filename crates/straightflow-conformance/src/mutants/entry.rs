//! What all mutants share: a configuration with a number of draws, and the parts of an entry that
//! do not matter to them.

use straightflow::distribution::FamilyKind;
use straightflow::estimator::{About, Bias, Need};
use straightflow::objective::ObjectiveKind;

/// The text of an entry of a mutant.
pub const fn about(
    id: &'static str,
    families: &'static [FamilyKind],
    bias: Bias,
    needs: &'static [Need],
) -> About {
    About {
        id,
        name: id,
        families,
        objective: ObjectiveKind::Expectation,
        bias,
        needs,
        cost: "as the correct one",
        reference: "none: it is wrong",
        options: &[
            ("mistake", "which mistake, or `none`"),
            ("samples", "the number of draws n of one estimate"),
        ],
        presets: &[],
    }
}

/// Declares the configuration, the entry's plumbing and the parts of the implementation of
/// [`Estimator`](straightflow::estimator::Estimator) that are the same for all mutants.
macro_rules! mutant {
    ($estimator:ident, $config:ident, $mistake:ident, $entry:ident, samples = $samples:expr, least = $least:expr) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $config {
            pub mistake: $mistake,
            pub samples: usize,
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    mistake: $mistake::default(),
                    samples: $samples,
                }
            }
        }

        impl straightflow::estimator::EstimatorConfig for $config {
            type Estimator = $estimator;

            fn init(self) -> straightflow::Result<$estimator> {
                $entry.need_samples(self.samples, $least)?;
                Ok($estimator { config: self })
            }
        }

        #[derive(Clone, Debug)]
        pub struct $estimator {
            config: $config,
        }

        /// A subject with a mistake, or without.
        fn subject(mistake: $mistake) -> crate::subject::Subject {
            crate::subject::Subject::new(move || {
                let config = $config {
                    mistake,
                    ..Default::default()
                };
                let estimator = straightflow::estimator::EstimatorConfig::init(config);
                Box::new(estimator.expect("a valid configuration"))
            })
        }
    };
}

/// The methods that every mutant has in common.
macro_rules! mutant_methods {
    ($entry:ident, least = $least:expr) => {
        fn entry(&self) -> &'static straightflow::estimator::Entry {
            &$entry
        }

        fn config(&self) -> serde_json::Value {
            $entry.record(&self.config)
        }

        fn samples(&self) -> usize {
            self.config.samples
        }

        fn least_samples(&self) -> usize {
            $least
        }
    };
}

pub(super) use {mutant, mutant_methods};
