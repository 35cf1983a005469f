//! Layers that are drawn again on the side are asked for without the model's parameters.

use std::cell::Cell;

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::{REGISTRY, Stacking, StateShape};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::layers::Stack;
use crate::scalar::build;

const BATCH: usize = 3;

/// A stack that counts how often it is asked for laws on the tape of its parameters, and has
/// constant ones as well.
struct Counting {
    live: Stack,
    constant: Stack,
    kind: ObjectiveKind,
    asked: Cell<usize>,
}

impl Counting {
    fn new(kind: ObjectiveKind) -> Self {
        let live = Stack::new(Family::Bernoulli, BATCH);
        let constant = Stack {
            first: live.first.clone().inner(),
            bias: live.bias.clone().inner(),
            ..live.clone()
        };
        Self {
            live,
            constant,
            kind,
            asked: Cell::new(0),
        }
    }
}

impl Objective<Law> for Counting {
    fn layers(&self) -> usize {
        self.live.layers
    }

    fn layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        self.asked.set(self.asked.get() + 1);
        self.live.layer(below)
    }

    fn frozen_layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        self.constant.layer(below)
    }

    fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        self.live.cost(z, q)
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }
}

/// The same objective without constant layers.
struct Plain(Counting);

impl Objective<Law> for Plain {
    fn layers(&self) -> usize {
        self.0.layers()
    }

    fn layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        self.0.layer(below)
    }

    fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        self.0.cost(z, q)
    }

    fn kind(&self) -> ObjectiveKind {
        self.0.kind()
    }
}

#[test]
fn laws_on_the_side_are_constants_and_change_no_bit() {
    let specs = REGISTRY.iter().map(|entry| entry.id);
    let (mut compared, mut spared) = (0, 0);
    for spec in specs.chain(["relax:control=sum"]) {
        let estimator = build(spec);
        let entry = estimator.entry();
        let bits = entry.families.contains(&Family::Bernoulli.kind());
        if !bits || matches!(estimator.stacking(), Stacking::Unsupported) {
            continue;
        }
        let device = Device::flex().autodiff();
        let shapes = [0, 2].map(|below| StateShape {
            features: 0,
            below,
            d: 2,
            k: 1,
            dtype: DType::F64,
        });
        let state = State::stacked(&*estimator, Key::new(1), &shapes, &device);
        let estimator = match state {
            Some(state) => estimator.bind(&state, None).expect("its own"),
            None => estimator,
        };
        let counting = Counting::new(entry.objective);
        let estimate = estimator.estimate_objective(Key::new(2), &counting);
        let got = counting.live.gradient(&estimate.expect(spec));
        let plain = Plain(Counting::new(entry.objective));
        let estimate = estimator.estimate_objective(Key::new(2), &plain);
        let want = plain.0.live.gradient(&estimate.expect(spec));
        assert_eq!(got, want, "{spec}");
        let (asked, without) = (counting.asked.get(), plain.0.asked.get());
        // Once for each layer, and once more where the layer above is drawn again for the model's
        // own gradient or has a part of the estimate to itself.
        assert!(asked <= 3, "{spec} asks {asked} times");
        compared += 1;
        spared += usize::from(without > asked);
    }
    assert_eq!((compared, spared), (25, 13));
}
