//! Whether estimators look at every parameter first.

use burn::tensor::Tensor;

use super::Law;

/// Whether estimators look at every parameter of a distribution before they work with it.
///
/// That look copies the parameters to the host, and waits for a device that computes
/// asynchronously. Without it a parameter that is NaN or infinite is found when the cost is
/// checked, which is a copy of `[n, batch]` numbers that happens anyway; the error is then the
/// same.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::distribution::Checks;
/// use straightflow::prelude::*;
///
/// let logits = Tensor::<2>::from_floats([[0.3, f32::NAN]], &Device::flex());
/// let q = Bernoulli::from_logits(logits)?.with_checks(Checks::Off);
/// let estimate = estimator("arm")?.estimate(Key::new(1), &q, |z| z.sum_dim(2));
/// assert!(matches!(estimate, Err(Error::Parameter { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// They do.
    #[default]
    On,
    /// They do not, if the variables are Bernoulli, categorical or subsets; counts are drawn on the
    /// host, where their parameters are anyway, and are always checked. A `draw` has no cost, so a
    /// bad parameter is not found there.
    Off,
}

/// Zeros `[n, batch]` that are NaN where a parameter of an unchecked law is not finite, or `None`
/// if all laws are checked. A law has a row for each batch element, or one for each draw too.
pub(crate) fn poison(laws: &[Law], [n, batch]: [usize; 2]) -> Option<Tensor<2>> {
    let unchecked = laws.iter().filter(|law| law.skips_checks());
    let each = unchecked.filter_map(|law| {
        let zeros = (law.natural().inner() * 0.0).sum_dim(2).sum_dim(1);
        let rows = law.dims()[0];
        let zeros = [batch, n * batch]
            .contains(&rows)
            .then(|| zeros.reshape([rows / batch, batch]));
        zeros.map(|zeros| zeros.expand([n, batch]))
    });
    each.reduce(|sum, zeros| sum + zeros)
}
