//! The cost of given samples.

use burn::tensor::{Device, Tensor};
use straightflow::Key;
use straightflow::distribution::{Family, Law};
use straightflow::objective::Objective;
use straightflow_experiments::vae::{Architecture, Centring, Direct, Elbo};

use super::scalar::{Code, Scalar, images, layout, model, seen, tensor};

fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    let data = x.inner().into_data();
    let values = data.as_slice::<f32>().expect("f32");
    values.iter().map(|x| f64::from(*x)).collect()
}

fn compare(arch: Architecture, family: Family, centring: Centring, relaxed: bool) {
    let device = Device::flex().autodiff();
    let layout = layout(arch, family, centring);
    let model = model(layout, &device);
    let scalar = Scalar::new(layout, &model);
    let [x, input] = [images(), images().map(seen)].map(|x| tensor(x, &device).inner());
    let elbo = Elbo::new(&model, x, input, Direct::Kept);

    const DRAWS: usize = 3;
    let mut z: Vec<Tensor<4>> = Vec::new();
    let mut laws: Vec<Law> = Vec::new();
    for layer in 0..arch.layers() {
        let law = elbo.layer(&z).expect("a law");
        let [_, d, k] = law.dims();
        let draws = if layer == 0 { DRAWS } else { 1 };
        let mut sample = law.sample(Key::new(5).child(layer as u64), draws);
        if relaxed {
            // Inside of the cube or the simplex.
            sample = sample * 0.7 + 0.3 / k.max(2) as f64;
        }
        z.push(sample.reshape([DRAWS, 2, d, k]));
        laws.push(law);
    }
    let cost = values(elbo.cost(&z, &laws).expect("valid"));
    let width = layout.dims[0] * layout.dims[1];
    let z: Vec<Vec<f64>> = z.into_iter().map(values).collect();
    for (row, cost) in cost.iter().enumerate() {
        let code: Code = z
            .iter()
            .map(|layer| layer[row * width..(row + 1) * width].to_vec())
            .collect();
        let image = images()[row % 2];
        let expected = scalar.cost(&image, &seen(image), &code);
        assert!(
            (cost - expected).abs() < 1e-5 * (1.0 + expected.abs()),
            "{arch:?}, {family:?}, {centring:?}, relaxed {relaxed}, row {row}: {cost}, not {expected}"
        );
    }
}

#[test]
fn the_cost_is_that_of_scalar_code() {
    let deep = [Architecture::FourLayer];
    for arch in Architecture::ALL.into_iter().chain(deep) {
        for centring in [Centring::Signed, Centring::None] {
            for family in [Family::Bernoulli, Family::Categorical] {
                compare(arch, family, centring, false);
                compare(arch, family, centring, true);
            }
        }
    }
    // Counts of counts grow without bounds, so one layer has to do.
    for arch in [Architecture::Linear, Architecture::Nonlinear] {
        compare(arch, Family::Poisson, Centring::None, false);
    }
}
