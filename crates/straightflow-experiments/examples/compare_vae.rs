//! Does a comparison early in training say which estimator is the best at the end?
//!
//! A linear autoencoder is trained for 1,000 steps. On the gradient of its encoder's logits for some
//! batches of images the estimators that have recorded runs are compared. The recorded test bounds after 100
//! and 400 epochs are in `docs/compare.md`, beside what this prints.
//!
//! ```text
//! cargo run --release -p straightflow-experiments --example compare_vae
//! ```

use burn::module::Module;
use burn::tensor::Tensor;
use straightflow::Key;
use straightflow::compare::{Budget, compare};
use straightflow::distribution::Law;
use straightflow::objective::Objective;
use straightflow_experiments::vae::{
    Architecture, Direct, Elbo, Protocol, Settings, Trainer, VaeError,
};

const STEPS: usize = 1_000;
/// Images of a batch, and batches.
const IMAGES: usize = 25;
const BATCHES: u64 = 3;
const ESTIMATORS: [&str; 8] = [
    "straight-through",
    "second-order-st",
    "gumbel-softmax",
    "pwgf:preset=paper,step=fixed(0.01)",
    "debiased-st",
    "arm",
    "disarm",
    "arms",
];

fn main() -> Result<(), VaeError> {
    // As in the recorded runs: one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| {
        let data = Protocol::Threshold.load(None)?;
        // What the model was trained with might matter, so there are two.
        for trained_with in ["straight-through", "disarm"] {
            let spec = trained_with.parse().map_err(VaeError::Estimator)?;
            let config = Settings::new(Architecture::Linear, spec).config(&data)?;
            let mut trainer = Trainer::new(&config, &data)?;
            for _ in 0..STEPS {
                trainer.step()?;
            }
            let model = trainer.model().valid();
            for batch in 0..BATCHES {
                let first = batch as usize * IMAGES;
                let indices: Vec<usize> = (first..first + IMAGES).collect();
                let x = trainer.training_images(0, &indices).inner();
                // What the encoder of this model sees.
                let input = x.clone() * 2.0 - 1.0;
                let elbo = Elbo::new(&model, x, input.clone(), Direct::Kept);
                let posterior = model.posterior(&input.into(), &[]);
                let q = posterior.map_err(VaeError::Estimator)?;
                let laws = [q.clone()];
                let cost = |z: Tensor<4>| elbo.cost(&[z], &laws as &[Law]);
                // Each takes what a step of its training takes: as many draws as its default.
                for evaluations in [2, 8] {
                    let budget = Budget::evaluations(evaluations)
                        .with_replicates(200)
                        .with_training(200, 1e-3);
                    let key = Key::new(1).child(batch).child(evaluations as u64);
                    let table = compare(key, &q, cost, ESTIMATORS, budget);
                    let table = table.map_err(VaeError::Estimator)?;
                    println!(
                        "{STEPS} steps of {trained_with}, images {first} to {}, {evaluations} f and df",
                        first + IMAGES - 1
                    );
                    println!("{table}\n");
                }
            }
        }
        Ok(())
    })
}
