//! One custom autodiff op, [`custom_grad`]: a tensor whose value is given and whose backward pass
//! is a rule chosen at run time.
//!
//! ```text
//!   forward:   out = value                       (whatever the caller computed, e.g. hard samples)
//!   backward:  d parent = rule(parent, value, d out)
//! ```
//!
//! Except for the buffers in `fused::flex` and the layers in `fused::tape`, this is the only file that
//! speaks the language of backend primitives. A [`Rule`] sees ordinary [`Tensor`]s on the inner (non-autodiff) device, so
//! a new rule is written like any other tensor code and runs on every backend.

use std::fmt::Debug;
use std::sync::Arc;

#[cfg(feature = "flex")]
use burn::backend::Flex;
use burn::backend::autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchKindConversion, DispatchTensor, backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::Tensor;

/// The backward pass of [`custom_grad`].
///
/// `P` and `Z` are the ranks of the parent and of the output. The defaults fit an estimator:
/// parameters `[batch, d, k]` and samples `[n, batch, d, k]`, so that `dyn Rule` means
/// `dyn Rule<3, 4>`.
///
/// A rule may be non-linear in `grad`: burn calls it once per backward pass, with the gradients of
/// all uses of the output already summed.
///
/// # What a rule must not do
///
/// * It must not hold or touch tensors of the tape that is being differentiated. burn keeps the
///   graph's lock while it runs the rule, and recording an operation on that graph waits for the
///   lock for ever. A rule may start and differentiate a tape of its own.
/// * It cannot return an error, because burn's backward pass cannot. Whatever can be wrong is to be
///   checked when the rule is built.
///
/// # Why these supertraits
///
/// The tape stores the rule, and asks that its state be `Clone + Send + Debug + 'static`. A shared
/// `Arc<dyn Rule>` is that exactly when the rule is `Debug + Send + Sync`.
pub trait Rule<const P: usize = 3, const Z: usize = 4>: Debug + Send + Sync {
    /// Maps the gradient of the output to the gradient of the parent.
    ///
    /// None of the three tensors is on a tape, and the result has the shape of `parent`.
    fn backward(&self, parent: Tensor<P>, output: Tensor<Z>, grad: Tensor<Z>) -> Tensor<P>;
}

/// Returns `value`, tied to `parent` on the tape by `rule`.
///
/// `value` is a constant: if it happens to be on a tape, that link is cut. If `parent` needs no
/// gradient (it is on no autodiff device, or it is a constant there), the result is plain `value`
/// and the rule is never called.
///
/// # Panics
///
/// The backward pass panics if the rule returns a gradient of another shape than `parent`, or one
/// on a tape.
///
/// ```
/// use std::sync::Arc;
/// use burn::tensor::{Device, Tensor};
/// use straightflow::{Rule, custom_grad};
///
/// /// Rounds forwards, does nothing backwards.
/// #[derive(Debug)]
/// struct PassThrough;
///
/// impl Rule<1, 1> for PassThrough {
///     fn backward(&self, _x: Tensor<1>, _rounded: Tensor<1>, grad: Tensor<1>) -> Tensor<1> {
///         grad
///     }
/// }
///
/// let x = Tensor::<1>::from_floats([0.4, 1.7], &Device::flex().autodiff()).require_grad();
/// let rounded = custom_grad(x.clone(), x.clone().inner().round(), Arc::new(PassThrough));
/// let grads = (rounded.clone() * rounded).sum().backward();
/// assert_eq!(x.grad(&grads).unwrap().to_data().try_to_vec::<f32>().unwrap(), [0.0, 4.0]);
/// ```
pub fn custom_grad<const P: usize, const Z: usize>(
    parent: Tensor<P>,
    value: Tensor<Z>,
    rule: Arc<dyn Rule<P, Z>>,
) -> Tensor<Z> {
    Tensor::from_dispatch(Dispatch::custom_grad(
        parent.into_dispatch(),
        value.into_dispatch(),
        rule,
    ))
}

/// The op at the level of backends.
///
/// `#[backend_extension]` implements the trait for burn's run-time `Dispatch` backend by a match
/// over the named backends; arguments that are not tensors (`rule`) are passed through. `Cube` is
/// every CubeCL runtime (wgpu, CUDA, ...), with kernel fusion or without. A backend without
/// autodiff has nothing to record, so the default body serves all.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "wgpu", feature = "cuda")),
    Autodiff
)]
pub trait CustomGrad: Backend {
    /// See [`custom_grad`].
    fn custom_grad<const P: usize, const Z: usize>(
        _parent: FloatTensor<Self>,
        value: FloatTensor<Self>,
        _rule: Arc<dyn Rule<P, Z>>,
    ) -> FloatTensor<Self> {
        value
    }
}

#[cfg(feature = "flex")]
impl CustomGrad for Flex {}
#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl CustomGrad for burn::backend::Cube {}

// The bound on `DispatchTensor` is what lets generic code cross from primitives of `B` to `Tensor`
// and back. Every backend that burn can dispatch to meets it.
impl<B, C> CustomGrad for Autodiff<B, C>
where
    B: Backend,
    C: CheckpointStrategy,
    DispatchTensor: DispatchKindConversion<B>,
{
    fn custom_grad<const P: usize, const Z: usize>(
        parent: FloatTensor<Self>,
        value: FloatTensor<Self>,
        rule: Arc<dyn Rule<P, Z>>,
    ) -> FloatTensor<Self> {
        // The guard keeps the parent's node alive until the new step is registered.
        let (parent, guard) = parent.into_parts();
        let value = value.into_primitive();
        match RuleStep::<P, Z>
            .prepare::<C>([guard])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let state = RuleState {
                    parent: Tensor::from_primitive::<B>(parent),
                    output: Tensor::from_primitive::<B>(value.clone()),
                    rule,
                };
                prep.finish(state, value)
            }
            OpsKind::UnTracked(prep) => prep.finish(value),
        }
    }
}

/// The step on the tape. burn wants it free of state; the state travels in [`RuleState`].
#[derive(Debug)]
struct RuleStep<const P: usize, const Z: usize>;

/// What the backward pass needs. The tensors are plain (inner) ones and share their buffers with
/// the forward pass.
#[derive(Clone, Debug)]
struct RuleState<const P: usize, const Z: usize> {
    parent: Tensor<P>,
    output: Tensor<Z>,
    rule: Arc<dyn Rule<P, Z>>,
}

impl<B, const P: usize, const Z: usize> Backward<B, 1> for RuleStep<P, Z>
where
    B: Backend,
    DispatchTensor: DispatchKindConversion<B>,
{
    type State = RuleState<P, Z>;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = Tensor::from_primitive::<B>(grads.consume::<B>(&ops.node));
        let [Some(node)] = ops.parents else { return };
        let RuleState {
            parent,
            output,
            rule,
        } = ops.state;

        let expected = parent.dims();
        let result = rule.backward(parent, output, grad);
        assert_eq!(
            result.dims(),
            expected,
            "{rule:?} returned a gradient of the wrong shape"
        );
        let result = result
            .try_into_primitive::<B>()
            .expect("a rule returns a tensor of the inner device, not one on a tape");
        grads.register::<B>(node.id, result);
    }
}
