//! The straightflow laboratory: a command line around the library and its experiments.

use std::process::ExitCode;

use straightflow_experiments::EXPERIMENTS;

/// Training makes and drops tensors of the same sizes in every step; the system's allocator maps their
/// pages anew each time, which takes as long as the arithmetic.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    straightflow_cli::main(EXPERIMENTS, &words)
}
