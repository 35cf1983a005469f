//! The memory of a run.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{errors, straightflow};

/// The most that a process had in memory, in kB, while it is alive.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn runs_of_all_architectures_stay_below_400_megabytes() {
    for arch in ["linear", "two-layer", "nonlinear"] {
        let arguments = ["vae", "--arch", arch, "--images", "2000", "--epochs", "1"];
        let child = straightflow(&arguments).spawn();
        let mut child = child.expect("the binary runs");
        let mut most = 0;
        while child.try_wait().expect("a status").is_none() {
            most = most.max(peak(child.id()).unwrap_or(0));
            sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{arch}: {}", errors(&output));
        assert!(most > 20_000, "{arch}: nothing was measured: {most} kB");
        assert!(most < 400_000, "{arch}: {most} kB");
    }
}
