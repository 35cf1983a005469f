//! What the expectation of a subject's gradient has to be, for one variable and for three.

use straightflow::distribution::FamilyKind;
use straightflow::objective::ObjectiveKind;

use crate::problem::Problem;
use crate::product::Product;
use crate::reference::{self, Expected};
use crate::subject::{Failure, Subject, Target};

impl Subject {
    /// What the expectation of the gradient has to be.
    ///
    /// # Errors
    ///
    /// If there is no reference for a biased estimator.
    pub fn expected(&self, problem: &Problem) -> Result<Expected, Failure> {
        let estimator = self.estimator();
        let fail = |found: String| self.failure("reference", problem, found);
        match (&self.target, estimator.entry().objective) {
            (Target::Exact, ObjectiveKind::Expectation) => {
                Ok(Expected::exact(problem.exact_gradient()))
            }
            (Target::Exact, ObjectiveKind::Bound) => {
                let gradient = reference::bound_gradient(problem.outcomes(), estimator.draws());
                gradient.map(Expected::exact).map_err(fail)
            }
            (Target::Reference { id, config }, _) => {
                let known = reference::target(id, config, problem);
                known.ok_or_else(|| {
                    fail(format!(
                        "a biased estimator needs its published target: add \
                         `reference/{}.rs` and a line in `reference/mod.rs`",
                        id.replace('-', "_")
                    ))
                })
            }
        }
    }

    /// The problem of three variables that the subject is tested with.
    pub fn product(&self, kind: FamilyKind) -> Product {
        match self.entry().objective {
            ObjectiveKind::Expectation => Product::of(kind),
            ObjectiveKind::Bound => Product::with_few_states(kind),
        }
    }

    /// As [`expected`](Self::expected), for a product of costs.
    ///
    /// # Errors
    ///
    /// As [`expected`](Self::expected).
    pub fn expected_product(&self, product: &Product) -> Result<Expected, Failure> {
        let estimator = self.estimator();
        let fail = |found: String| self.failure("reference", product, found);
        match (&self.target, estimator.entry().objective) {
            (Target::Exact, ObjectiveKind::Expectation) => {
                Ok(Expected::exact(product.exact_gradient()))
            }
            (Target::Exact, ObjectiveKind::Bound) => {
                let gradient = reference::bound_gradient(product.outcomes(), estimator.draws());
                gradient.map(Expected::exact).map_err(fail)
            }
            (Target::Reference { id, config }, _) => {
                let known = reference::expected_product(id, config, product);
                known.ok_or_else(|| {
                    fail("a biased estimator needs a line in `reference/product.rs`".to_owned())
                })
            }
        }
    }
}
