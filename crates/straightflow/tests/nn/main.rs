//! The quantising layers, each against a scalar formula that shares no code with it.

mod fsq;
mod learned_step;
mod lfq;
mod round_ste;
mod support;
mod vector_quantizer;
