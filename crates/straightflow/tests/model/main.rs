//! What a burn model holds: parameters of any rank, samplers, streams of keys, and layers with weights from a key.

mod init;
mod keys;
mod ranks;
mod sampler;
#[path = "../library/support.rs"]
#[allow(dead_code)]
mod support;
