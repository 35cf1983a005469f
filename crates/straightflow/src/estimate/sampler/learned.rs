//! State that learns behind `&self`.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::module::{
    Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::{Device, Tensor};

use crate::estimate::state::{Lesson, State};

/// The state of a sampler and the estimate that it has not taken note of yet.
///
/// The forward pass of a burn model has `&self`, and what an estimate teaches is complete only after
/// the backward pass. So it waits here, and is learned at the next occasion: when gradients are
/// collected, at the optimiser's step, in a record, or before the next estimate.
#[derive(Debug)]
pub(super) struct Learned(Mutex<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    state: State,
    waiting: Option<(Tensor<2>, Vec<Lesson>)>,
}

impl Learned {
    pub(super) fn new(state: State) -> Self {
        let waiting = None;
        Self(Mutex::new(Inner { state, waiting }))
    }

    /// The state, up to date.
    pub(super) fn state(&self) -> State {
        self.up_to_date().state.clone()
    }

    /// Leaves the costs and lessons of an estimate to be learned.
    pub(super) fn expect(&self, values: Tensor<2>, lessons: Vec<Lesson>) {
        let mut inner = self.up_to_date();
        if !inner.state.layers.is_empty() {
            inner.waiting = Some((values, lessons));
        }
    }

    fn up_to_date(&self) -> MutexGuard<'_, Inner> {
        // Each part is written as a whole, so what a thread that panicked left is in order.
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let complete =
            |(_, lessons): &mut (_, Vec<Lesson>)| lessons.iter().all(Lesson::is_complete);
        if let Some((values, lessons)) = inner.waiting.take_if(complete) {
            inner.state.note(values, &lessons);
        }
        inner
    }

    fn changed(self, change: impl FnOnce(State) -> State) -> Self {
        let Inner { state, waiting } = self.up_to_date().clone();
        let state = change(state);
        Self(Mutex::new(Inner { state, waiting }))
    }
}

impl Clone for Learned {
    /// A copy learns on its own, as copies of weights do.
    fn clone(&self) -> Self {
        Self(Mutex::new(self.up_to_date().clone()))
    }
}

impl Module for Learned {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.state().visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.changed(|state| state.map(mapper))
    }

    fn valid(&self) -> Self {
        Self::new(self.state().valid())
    }

    fn train(self) -> Self {
        self.changed(Module::train)
    }

    fn materialize(self) -> Self {
        self.changed(Module::materialize)
    }

    fn to_device(self, device: &Device) -> Self {
        self.changed(|state| state.to_device(device))
    }

    fn fork(self, device: &Device) -> Self {
        self.changed(|state| state.fork(device))
    }

    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.state().collect_devices(devices)
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}

impl ModuleDisplayDefault for Learned {
    fn content(&self, content: Content) -> Option<Content> {
        ModuleDisplayDefault::content(&self.state(), content)
    }
}

impl ModuleDisplay for Learned {}
