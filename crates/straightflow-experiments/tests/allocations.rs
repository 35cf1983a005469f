//! What a training step asks of the allocator. A test of its own process: it counts all of it.

use straightflow_experiments::vae::{Architecture, Protocol, Settings, Trainer};

/// The numbers and bytes of the allocations of one step, after a few others.
fn of_a_step(arch: Architecture, spec: &str) -> (u64, u64) {
    let data = Protocol::Threshold.load(None).expect("embedded data");
    let settings = Settings {
        batch: Some(50),
        ..Settings::new(arch, spec.parse().expect("a specification"))
    };
    let config = settings.config(&data).expect("valid settings");
    // Counts are those of one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread pool").install(|| {
        let mut trainer = Trainer::new(&config, &data).expect("a trainer");
        // The first step makes the moments, and every twentieth looks at the variance.
        for _ in 0..5 {
            trainer.step().expect("a step");
        }
        let info = allocation_counter::measure(|| trainer.step().expect("a step"));
        (info.count_total, info.bytes_total)
    })
}

#[test]
fn a_step_allocates_its_gradients_and_little_more() {
    for (arch, spec, most, most_bytes) in [
        (Architecture::Linear, "straight-through", 800, 4_000_000),
        (
            Architecture::Nonlinear,
            "straight-through",
            1_400,
            7_000_000,
        ),
    ] {
        let (count, bytes) = of_a_step(arch, spec);
        println!("{arch:?}, {spec}: {count} allocations, {bytes} bytes");
        assert!(
            count <= most && bytes <= most_bytes,
            "{arch:?}, {spec}: {count} allocations, {bytes} bytes"
        );
    }
}
