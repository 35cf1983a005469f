//! The quantising layers, each against a scalar formula that shares no code with it.

mod fsq;
mod lfq;
mod round_ste;
mod support;
