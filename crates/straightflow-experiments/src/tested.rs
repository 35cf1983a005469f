//! The estimator that a row of results is about.

use serde::{Deserialize, Serialize};
use straightflow::estimator::{Estimator, Spec};

/// An estimator as rows of results name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// Its id.
    pub id: String,
    /// Its name.
    pub label: String,
    /// How it is configured.
    pub spec: Spec,
    /// Whether it says that its bias is none. On a cost that breaks its conditions it may still fail.
    pub unbiased: bool,
}

impl Tested {
    pub(crate) fn new(estimator: &dyn Estimator) -> Self {
        let entry = estimator.entry();
        Self {
            id: entry.id.to_owned(),
            label: entry.name.to_owned(),
            spec: estimator.spec(),
            unbiased: entry.bias.is_unbiased(),
        }
    }
}
