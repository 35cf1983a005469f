//! Signals that ask a run to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether a run was asked to stop, and by which signal.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    again: Arc<AtomicBool>,
}

impl Interrupt {
    /// The number of the signal goes here; 0 is none.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.signal)
    }

    /// Set by the first signal, for handlers that end the process with the second one.
    pub fn again(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.again)
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<usize> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|signal| *signal > 0)
    }
}
