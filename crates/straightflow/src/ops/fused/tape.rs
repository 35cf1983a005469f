//! A layer on the tape: one value with three parents, and one backward pass for all of them.

use std::fmt::Debug;
use std::sync::Arc;

use burn::backend::autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchKindConversion, DispatchTensor, Flex, backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::Tensor;

/// Which gradients somebody reads.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub input: bool,
    pub weight: bool,
    pub bias: bool,
}

/// The gradients that were wanted.
#[derive(Debug, Default)]
pub struct LayerGradients {
    pub(super) input: Option<Tensor<2>>,
    pub(super) weight: Option<Tensor<2>>,
    pub(super) bias: Option<Tensor<1>>,
}

/// The backward pass of a layer. As for [`Rule`](crate::Rule), no tensor of the tape is to be held or
/// touched.
pub trait LayerRule: Debug + Send + Sync {
    /// From the value of the layer and its gradient to those of the parents, none of them on a tape.
    fn backward(&self, value: Tensor<2>, grad: Tensor<2>, wanted: Wanted) -> LayerGradients;
}

/// `value`, tied to input, weight and bias by a rule. What is on no tape is a constant.
pub(super) fn on_the_tape(
    [input, weight]: [Tensor<2>; 2],
    bias: Tensor<1>,
    value: Tensor<2>,
    rule: Arc<dyn LayerRule>,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::layer(
        input.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        value.into_dispatch(),
        rule,
    ))
}

/// The op at the level of backends; see `ops::custom_grad` for how that works. Only flex has kernels,
/// and so rules, for layers.
#[backend_extension(Flex, Autodiff)]
pub trait LayerOp: Backend {
    /// See [`on_the_tape`].
    fn layer(
        _input: FloatTensor<Self>,
        _weight: FloatTensor<Self>,
        _bias: FloatTensor<Self>,
        value: FloatTensor<Self>,
        _rule: Arc<dyn LayerRule>,
    ) -> FloatTensor<Self> {
        value
    }
}

impl LayerOp for Flex {}

impl<B, C> LayerOp for Autodiff<B, C>
where
    B: Backend,
    C: CheckpointStrategy,
    DispatchTensor: DispatchKindConversion<B>,
{
    fn layer(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        value: FloatTensor<Self>,
        rule: Arc<dyn LayerRule>,
    ) -> FloatTensor<Self> {
        let guards = [input, weight, bias].map(|parent| parent.into_parts().1);
        let value = value.into_primitive();
        match LayerStep.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let state = LayerState {
                    value: Tensor::from_primitive::<B>(value.clone()),
                    rule,
                };
                prep.finish(state, value)
            }
            OpsKind::UnTracked(prep) => prep.finish(value),
        }
    }
}

#[derive(Debug)]
struct LayerStep;

#[derive(Clone, Debug)]
struct LayerState {
    value: Tensor<2>,
    rule: Arc<dyn LayerRule>,
}

impl<B> Backward<B, 3> for LayerStep
where
    B: Backend,
    DispatchTensor: DispatchKindConversion<B>,
{
    type State = LayerState;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = Tensor::from_primitive::<B>(grads.consume::<B>(&ops.node));
        let [input, weight, bias] = ops.parents;
        let wanted = Wanted {
            input: input.is_some(),
            weight: weight.is_some(),
            bias: bias.is_some(),
        };
        let LayerState { value, rule } = ops.state;
        let gradients = rule.backward(value, grad, wanted);
        if let (Some(node), Some(gradient)) = (input, gradients.input) {
            grads.register::<B>(node.id, plain::<B, 2>(gradient));
        }
        if let (Some(node), Some(gradient)) = (weight, gradients.weight) {
            grads.register::<B>(node.id, plain::<B, 2>(gradient));
        }
        if let (Some(node), Some(gradient)) = (bias, gradients.bias) {
            grads.register::<B>(node.id, plain::<B, 1>(gradient));
        }
    }
}

fn plain<B, const D: usize>(gradient: Tensor<D>) -> FloatTensor<B>
where
    B: Backend,
    DispatchTensor: DispatchKindConversion<B>,
{
    let gradient = gradient.try_into_primitive::<B>();
    gradient.expect("a tensor of the inner device, not one on a tape")
}
