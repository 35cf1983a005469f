//! The negative ELBO once more, in double precision, number by number, from a model's parameters.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use straightflow::Key;
use straightflow::distribution::Family;
use straightflow_experiments::vae::{Architecture, Centring, Layout, Prior, Vae};

pub const PIXELS: usize = 4;

/// A small model: three bits, two variables of three categories, or two counts in a layer.
pub fn layout(arch: Architecture, family: Family, latent_inputs: Centring) -> Layout {
    let dims = match family {
        Family::Categorical => [2, 3],
        Family::Poisson => [2, 1],
        _ => [3, 1],
    };
    let prior = match latent_inputs {
        Centring::Signed => Prior::Fixed,
        _ => Prior::Learned,
    };
    Layout {
        arch,
        family,
        dims,
        hidden: 5,
        slope: 0.2,
        latent_inputs,
        prior,
    }
}

/// A model with parameters of some size, also where they start at zero.
pub fn model(layout: Layout, device: &Device) -> Vae {
    struct Shift(u64);
    impl burn::module::ModuleMapper for Shift {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            let key = Key::new(7).child(self.0);
            param.map(|x| {
                let u = key.uniform::<D>(x.shape(), &x.device(), x.dtype());
                let shifted = x.inner() + (u - 0.5);
                Tensor::from_inner(shifted).require_grad()
            })
        }
    }
    let mut model = Vae::new(layout, PIXELS, Key::new(3), device);
    let prior = model.prior.clone();
    model = model.map(&mut Shift(0));
    if layout.prior == Prior::Fixed {
        model.prior = prior;
    }
    model
}

/// The parameters of a model in the order of its parts: weights and biases of the encoder's networks,
/// of the decoder's, and the prior.
#[derive(Clone)]
pub struct Parameters(pub Vec<Vec<f64>>);

impl Parameters {
    pub fn of(model: &Vae) -> Self {
        struct Collect(Vec<Vec<f64>>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let data = param.val().into_data();
                let values = data.as_slice::<f32>().expect("f32");
                self.0.push(values.iter().map(|x| f64::from(*x)).collect());
            }
        }
        let mut collect = Collect(Vec::new());
        model.visit(&mut collect);
        Self(collect.0)
    }
}

/// What the scalar code knows of a model.
pub struct Scalar {
    pub layout: Layout,
    pub parameters: Parameters,
}

/// A sample of one image: the numbers of each layer.
pub type Code = Vec<Vec<f64>>;

impl Scalar {
    pub fn new(layout: Layout, model: &Vae) -> Self {
        Self {
            layout,
            parameters: Parameters::of(model),
        }
    }

    fn width(&self) -> usize {
        self.layout.dims[0] * self.layout.dims[1]
    }

    /// The number of the first parameter of a network, and its number of layers.
    fn network(&self, decoder: bool, layer: usize) -> (usize, usize) {
        let depth = match self.layout.arch {
            Architecture::Nonlinear => 3,
            _ => 1,
        };
        let before = match decoder {
            true => self.layout.arch.layers() + layer,
            false => layer,
        };
        (2 * depth * before, depth)
    }

    fn forward(&self, decoder: bool, layer: usize, input: &[f64]) -> Vec<f64> {
        let (first, depth) = self.network(decoder, layer);
        let mut x = input.to_vec();
        for i in 0..depth {
            let weights = &self.parameters.0[first + 2 * i];
            let mut y = self.parameters.0[first + 2 * i + 1].clone();
            let outputs = y.len();
            if i > 0 {
                for x in &mut x {
                    *x = if *x < 0.0 { self.layout.slope * *x } else { *x };
                }
            }
            for (row, x) in x.iter().enumerate() {
                for (column, y) in y.iter_mut().enumerate() {
                    *y += x * weights[row * outputs + column];
                }
            }
            x = y;
        }
        x
    }

    fn shown(&self, z: &[f64]) -> Vec<f64> {
        match self.layout.latent_inputs {
            Centring::Signed => z.iter().map(|z| 2.0 * z - 1.0).collect(),
            _ => z.to_vec(),
        }
    }

    /// The natural parameters of a layer of the encoder.
    pub fn posterior(&self, input: &[f64], below: &[Vec<f64>]) -> Vec<f64> {
        match below.last() {
            None => self.forward(false, 0, input),
            Some(z) => self.forward(false, below.len(), &self.shown(z)),
        }
    }

    /// `log q(z | x)`.
    pub fn log_posterior(&self, input: &[f64], z: &Code) -> f64 {
        let each = (0..z.len()).map(|l| self.log_law(&self.posterior(input, &z[..l]), &z[l]));
        each.sum()
    }

    /// `log p(x, z)`.
    pub fn log_joint(&self, x: &[f64], z: &Code) -> f64 {
        let prior = self.parameters.0.last().expect("the prior");
        let mut sum = self.log_law(prior, z.last().expect("a layer"));
        for layer in 0..z.len() - 1 {
            let natural = self.forward(true, layer + 1, &self.shown(&z[layer + 1]));
            sum += self.log_law(&natural, &z[layer]);
        }
        let logits = self.forward(true, 0, &self.shown(&z[0]));
        sum + x
            .iter()
            .zip(logits)
            .map(|(x, l)| log_bit(*x, l))
            .sum::<f64>()
    }

    /// The cost of a sample.
    pub fn cost(&self, x: &[f64], input: &[f64], z: &Code) -> f64 {
        self.log_posterior(input, z) - self.log_joint(x, z)
    }

    fn log_law(&self, natural: &[f64], z: &[f64]) -> f64 {
        assert_eq!(natural.len(), self.width());
        match self.layout.family {
            Family::Bernoulli => natural.iter().zip(z).map(|(l, z)| log_bit(*z, *l)).sum(),
            Family::Poisson => {
                let log = |(l, z): (&f64, &f64)| z * l - l.exp() - ln_factorial(*z);
                natural.iter().zip(z).map(log).sum()
            }
            Family::Categorical => {
                let k = self.layout.dims[1];
                let log = |(l, z): (&[f64], &[f64])| -> f64 {
                    let sum: f64 = l.iter().map(|l| l.exp()).sum();
                    l.iter().zip(z).map(|(l, z)| z * (l - sum.ln())).sum()
                };
                natural.chunks(k).zip(z.chunks(k)).map(log).sum()
            }
            other => unreachable!("{other:?} is no latent variable here"),
        }
    }
}

fn log_bit(x: f64, logit: f64) -> f64 {
    x * logit - logit.max(0.0) - (-logit.abs()).exp().ln_1p()
}

fn ln_factorial(count: f64) -> f64 {
    (1..=count as u64).map(|k| (k as f64).ln()).sum()
}

/// All codes of bits.
pub fn all_bits(layers: usize, width: usize) -> Vec<Code> {
    let bits = layers * width;
    let code = |number: usize| {
        let all: Vec<f64> = (0..bits).map(|i| (number >> i & 1) as f64).collect();
        all.chunks(width).map(<[f64]>::to_vec).collect()
    };
    (0..1 << bits).map(code).collect()
}

/// Two images of binary pixels, and what the encoder sees of them.
pub fn images() -> [[f64; PIXELS]; 2] {
    [[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]]
}

pub fn seen(image: [f64; PIXELS]) -> [f64; PIXELS] {
    image.map(|x| 2.0 * x - 1.0)
}

pub fn tensor(images: [[f64; PIXELS]; 2], device: &Device) -> Tensor<2> {
    Tensor::from_floats(images.map(|row| row.map(|x| x as f32)), device)
}
