//! An objective in canonical shapes, as estimators see it: checked and counted.

use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Tensor;

use super::{Objective, ObjectiveKind};
use crate::distribution::checks::poison;
use crate::distribution::{Distribution, Law, samples_of};
use crate::error::{Error, Result};
use crate::gradient::with_gradient;
use crate::ops::{first_non_finite, leaf_like, on_the_side};

/// [`Objective`] without the type of the distribution.
pub(crate) trait CanonicalObjective {
    fn kind(&self) -> ObjectiveKind;
    fn layers(&self) -> usize;
    fn layer(&self, below: &[Tensor<4>], frozen: bool) -> Result<Law>;
    fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Result<Tensor<2>>;
}

/// The bridge from the typed to the canonical form.
pub(crate) struct Untyped<'a, D, O> {
    objective: &'a O,
    distribution: PhantomData<D>,
    /// The laws of the layers that were asked for, which know the shapes of their samples.
    laws: RefCell<Vec<Law>>,
}

impl<'a, D, O> Untyped<'a, D, O> {
    pub(crate) fn new(objective: &'a O) -> Self {
        Self {
            objective,
            distribution: PhantomData,
            laws: RefCell::default(),
        }
    }
}

impl<D: Distribution, O> Untyped<'_, D, O> {
    /// Samples of the layers, the laws of which were asked for.
    pub(crate) fn typed(&self, z: &[Tensor<4>]) -> Vec<D::Samples> {
        let laws = self.laws.borrow();
        let each = laws.iter().zip(z);
        each.map(|(law, z)| samples_of::<D>(law, z.clone()))
            .collect()
    }

    /// Takes note of the law of a layer.
    fn remember(&self, layer: usize, law: &Law) {
        let mut laws = self.laws.borrow_mut();
        if layer == laws.len() {
            laws.push(law.constant());
        }
    }
}

impl<D: Distribution, O: Objective<D>> CanonicalObjective for Untyped<'_, D, O> {
    fn kind(&self) -> ObjectiveKind {
        self.objective.kind()
    }

    fn layers(&self) -> usize {
        self.objective.layers()
    }

    fn layer(&self, below: &[Tensor<4>], frozen: bool) -> Result<Law> {
        let z = self.typed(below);
        let q = match frozen {
            true => self.objective.frozen_layer(&z)?,
            false => self.objective.layer(&z)?,
        };
        self.remember(below.len(), q.law());
        Ok(q.law().clone())
    }

    fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Result<Tensor<2>> {
        laws.iter()
            .enumerate()
            .for_each(|(layer, law)| self.remember(layer, law));
        // A method may have made a law anew, of the right family but in canonical shape only.
        let known = self.laws.borrow();
        let arranged = laws.iter().zip(known.iter());
        let q: Vec<D> = arranged
            .map(|(law, known)| D::from_law(law.arranged_as(known)))
            .collect();
        drop(known);
        let z = self.typed(z);
        match frozen {
            true => self.objective.frozen_cost(&z, &q),
            false => self.objective.cost(&z, &q),
        }
    }
}

/// How often the cost was evaluated, in draws: an evaluation of `n` draws counts `n`.
///
/// The counts are live: the backward pass of a surrogate adds to them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    evaluations: Arc<AtomicUsize>,
    gradients: Arc<AtomicUsize>,
}

impl Counts {
    /// Evaluations of the cost.
    pub fn evaluations(&self) -> usize {
        self.evaluations.load(Ordering::Relaxed)
    }

    /// Backward passes through the cost, to the samples or to the model's parameters.
    pub fn gradients(&self) -> usize {
        self.gradients.load(Ordering::Relaxed)
    }

    /// Lets a cost `[n, batch]` of `draws` draws through that has the expected shape and is finite,
    /// and counts it and its backward pass.
    pub(crate) fn watch(
        &self,
        cost: Tensor<2>,
        expected: [usize; 2],
        draws: usize,
    ) -> Result<Tensor<2>> {
        self.evaluations.fetch_add(draws, Ordering::Relaxed);
        let cost = check_cost(cost, expected)?;
        let gradients = self.gradients.clone();
        Ok(with_gradient(
            cost.clone(),
            cost.inner(),
            move |_, _, grad| {
                gradients.fetch_add(draws, Ordering::Relaxed);
                grad
            },
        ))
    }
}

/// An objective in canonical shapes, as estimators see it: checked and counted.
///
/// An estimator of one variable asks for the cost of that variable: the objective has one layer, or
/// is the cost of several as a function of one. A rule for all layers asks for the laws of the
/// layers and the cost of all.
pub struct CountedObjective<'a> {
    objective: &'a dyn CanonicalObjective,
    counts: Counts,
    /// How many draws of the estimate each batch element of the law stands for.
    draws_per_element: usize,
}

impl Debug for CountedObjective<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountedObjective")
            .field(&self.counts)
            .finish()
    }
}

impl<'a> CountedObjective<'a> {
    pub(crate) fn new(objective: &'a dyn CanonicalObjective) -> Result<Self> {
        if objective.layers() == 0 {
            return Err(Error::EmptyChain);
        }
        Ok(Self::sharing(objective, Counts::default(), 1))
    }

    /// An objective that adds to the counts of another.
    pub(crate) fn sharing(
        objective: &'a dyn CanonicalObjective,
        counts: Counts,
        draws_per_element: usize,
    ) -> Self {
        Self {
            objective,
            counts,
            draws_per_element,
        }
    }

    /// What is made of the costs of several draws.
    pub fn kind(&self) -> ObjectiveKind {
        self.objective.kind()
    }

    /// The counts so far, and from now on.
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// The number of layers, at least 1.
    pub fn layers(&self) -> usize {
        self.objective.layers()
    }

    /// The law of layer `below.len()` given samples `[n, batch, d, k]` of those below, on the tapes
    /// of the samples and of the model. It has `batch` rows if it is the lowest, else `n batch`.
    ///
    /// # Errors
    ///
    /// Those of the objective, or if the law has another number of rows.
    pub fn layer(&self, below: &[Tensor<4>]) -> Result<Law> {
        self.checked_layer(below, false)
    }

    /// As [`layer`](Self::layer), with the model's own parameters as constants, if the objective
    /// knows how.
    ///
    /// # Errors
    ///
    /// As [`layer`](Self::layer).
    pub fn frozen_layer(&self, below: &[Tensor<4>]) -> Result<Law> {
        self.checked_layer(below, true)
    }

    fn checked_layer(&self, below: &[Tensor<4>], frozen: bool) -> Result<Law> {
        let law = self.objective.layer(below, frozen)?;
        if let Some(z) = below.first() {
            let [n, batch, ..] = z.dims();
            let (layer, expected, got) = (below.len(), n * batch, law.dims()[0]);
            if expected != got {
                return Err(Error::LayerRows {
                    layer,
                    expected,
                    got,
                });
            }
        }
        Ok(law)
    }

    /// The cost `[n, batch]` of samples `[n, batch, d, k]` of the only layer, on the tapes of the
    /// samples, of `law` and of the model.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape or is not finite.
    pub fn evaluate(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        self.evaluate_layers(&[z], slice::from_ref(law))
    }

    /// As [`evaluate`](Self::evaluate), of the samples of all layers and their laws.
    pub fn evaluate_layers(&self, z: &[Tensor<4>], laws: &[Law]) -> Result<Tensor<2>> {
        self.watched(z, laws, false)
    }

    /// As [`evaluate_layers`](Self::evaluate_layers), for samples on the tape whose gradient is the
    /// estimate.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate), and [`NoGradient`](Error::NoGradient) if the samples are on
    /// a tape and the cost is on none: its gradient would be a silent zero.
    pub fn evaluate_attached(&self, z: &[Tensor<4>], laws: &[Law]) -> Result<Tensor<2>> {
        let cost = self.evaluate_layers(z, laws)?;
        if z.iter().any(Tensor::is_tracked) && !cost.is_tracked() {
            return Err(Error::NoGradient);
        }
        Ok(cost)
    }

    /// As [`evaluate_layers`](Self::evaluate_layers), with the model's own parameters as constants,
    /// if the objective knows how.
    pub fn evaluate_frozen(&self, z: &[Tensor<4>], laws: &[Law]) -> Result<Tensor<2>> {
        self.watched(z, laws, true)
    }

    /// The cost `[n, batch]` of constant samples of the only layer as a constant: the model's own
    /// parameters are left out.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate).
    pub fn value(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        Ok(self.evaluate_frozen(&[z], &[law.constant()])?.inner())
    }

    /// The cost `[n, batch]` and its gradient `[n, batch, d, k]` at constant samples of the only
    /// layer, both as constants.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape, is not finite, does not depend on the samples, or captures
    /// a distribution of the tape.
    pub fn value_and_gradient(&self, z: Tensor<4>, law: &Law) -> Result<(Tensor<2>, Tensor<4>)> {
        let leaf = leaf_like(z, &law.natural());
        on_the_side(|| {
            let cost = self.evaluate_frozen(slice::from_ref(&leaf), &[law.constant()])?;
            if !cost.is_tracked() {
                return Err(Error::NoGradient);
            }
            // The sum keeps draws and batch elements apart.
            let gradient = leaf.grad(&cost.clone().sum().backward());
            Ok((cost.inner(), gradient.ok_or(Error::NoGradient)?))
        })
    }

    /// The cost without checks and counts, for an objective that has its own.
    pub(crate) fn unwatched(
        &self,
        z: &[Tensor<4>],
        laws: &[Law],
        frozen: bool,
    ) -> Result<Tensor<2>> {
        self.objective.cost(z, laws, frozen)
    }

    fn watched(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Result<Tensor<2>> {
        let [n, batch, ..] = z[0].dims();
        let cost = self.unwatched(z, laws, frozen)?;
        let poison = poison(laws, [n, batch]).filter(|_| cost.dims() == [n, batch]);
        if let Some(poison) = poison
            && let Err(error) = check_cost(cost.clone().inner() + poison, [n, batch])
        {
            // There is time now to say which parameter it was, if it was one.
            laws.iter().try_for_each(Law::validate)?;
            return Err(error);
        }
        self.counts
            .watch(cost, [n, batch], n * self.draws_per_element)
    }
}

/// Lets a cost through that has the shape `[n, batch]` and is finite.
pub(crate) fn check_cost(cost: Tensor<2>, expected: [usize; 2]) -> Result<Tensor<2>> {
    if cost.dims() != expected {
        return Err(Error::CostShape {
            expected,
            got: cost.dims().to_vec(),
        });
    }
    if let Some((index, value)) = first_non_finite(&cost) {
        return Err(Error::NonFiniteCost {
            draw: index / expected[1],
            element: index % expected[1],
            value,
        });
    }
    Ok(cost)
}
