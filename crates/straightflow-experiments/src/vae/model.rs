//! The networks of a variational autoencoder with one or two layers of discrete latent variables.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use straightflow::distribution::{Family, Law};
use straightflow::fused::{affine, bit_affine};
use straightflow::{Key, Result};

use super::config::{Architecture, Config, WIDTH};
use super::input::Input;
use super::protocol::{Centring, Prior};

/// Layers with leaky rectifiers between them.
#[derive(Module, Debug)]
pub struct Network {
    layers: Vec<Linear>,
    #[module(skip)]
    slope: f64,
}

impl Network {
    /// Weights from the key, uniform with variance `2 / (inputs + outputs)` (Glorot and Bengio 2010),
    /// and biases of zero.
    fn new(key: Key, widths: &[usize], slope: f64, device: &Device) -> Self {
        let layer = |(i, ends): (usize, &[usize])| {
            let (inputs, outputs) = (ends[0], ends[1]);
            let limit = (6.0 / (inputs + outputs) as f64).sqrt() as f32;
            let mut weights = vec![0.0f32; inputs * outputs];
            key.child(i as u64).fill_uniform_f32(&mut weights);
            for weight in &mut weights {
                *weight = (2.0 * *weight - 1.0) * limit;
            }
            let weights = TensorData::new(weights, [inputs, outputs]);
            Linear {
                weight: Param::from_tensor(Tensor::from_data(weights, device)),
                bias: Some(Param::from_tensor(Tensor::zeros([outputs], device))),
            }
        };
        Self {
            layers: widths.windows(2).enumerate().map(layer).collect(),
            slope,
        }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.forward_from(0, x)
    }

    /// As [`forward`](Self::forward), of what an encoder sees of images.
    fn forward_input(&self, input: &Input) -> Tensor<2> {
        match input.bits() {
            Some(bits) => {
                let (weight, bias, slope) = self.layer(0);
                self.forward_from(1, bit_affine(bits, weight, bias, slope))
            }
            None => self.forward(input.tensor()),
        }
    }

    fn forward_from(&self, first: usize, x: Tensor<2>) -> Tensor<2> {
        (first..self.layers.len()).fold(x, |x, index| {
            let (weight, bias, slope) = self.layer(index);
            affine(x, weight, bias, slope)
        })
    }

    /// The parameters of a layer, and the slope of the rectifier behind it if there is one.
    fn layer(&self, index: usize) -> (Tensor<2>, Tensor<1>, Option<f64>) {
        let layer = &self.layers[index];
        let bias = layer.bias.as_ref().expect("every layer has a bias");
        let inner = index + 1 < self.layers.len();
        (layer.weight.val(), bias.val(), inner.then_some(self.slope))
    }

    fn set_last_bias(&mut self, bias: &[f32], device: &Device) {
        let last = self.layers.last_mut().expect("a network has a layer");
        last.bias = Some(Param::from_tensor(Tensor::from_floats(bias, device)));
    }
}

/// `q(z_1 | x) q(z_2 | z_1) ..` and `p(x | z_1) p(z_1 | z_2) .. p(z_top)`.
#[derive(Module, Debug)]
pub struct Vae {
    /// From the image, and from each layer of latent variables but the topmost, to the natural
    /// parameters of the next.
    pub encoder: Vec<Network>,
    /// From each layer of latent variables to the natural parameters of what is below it: the logits
    /// of the pixels first.
    pub decoder: Vec<Network>,
    /// The natural parameters `[d, k]` of the topmost layer.
    pub prior: Param<Tensor<2>>,
    #[module(skip)]
    layout: Layout,
}

/// The sizes of a model and what it does with its variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Which networks there are.
    pub arch: Architecture,
    /// The family of the latent variables.
    pub family: Family,
    /// The variables of a layer, and the numbers that hold one of them.
    pub dims: [usize; 2],
    /// The units of hidden layers.
    pub hidden: usize,
    /// The slope of the rectifiers for negative arguments.
    pub slope: f64,
    /// What networks see of latent variables; [`Centring::Mean`] is not for them and means the variables
    /// themselves.
    pub latent_inputs: Centring,
    /// The law of the topmost variables.
    pub prior: Prior,
}

impl Layout {
    /// The layout of a run.
    pub fn new(config: &Config) -> Self {
        Self {
            arch: config.arch,
            family: config.latent.family(),
            dims: config.dims(),
            hidden: WIDTH,
            slope: config.slope,
            latent_inputs: config.latent_inputs,
            prior: config.prior,
        }
    }
}

impl Vae {
    /// A model of images with so many pixels, with weights from the key.
    pub fn new(layout: Layout, pixels: usize, key: Key, device: &Device) -> Self {
        let [d, k] = layout.dims;
        let [encoder, decoder] = key.split();
        let ends = |layer: usize| if layer == 0 { pixels } else { d * k };
        let network = |key: Key, from: usize, to: usize| {
            let hidden = layout.hidden;
            let widths = match layout.arch {
                Architecture::Nonlinear => vec![from, hidden, hidden, to],
                Architecture::Linear | Architecture::TwoLayer | Architecture::FourLayer => {
                    vec![from, to]
                }
            };
            Network::new(key, &widths, layout.slope, device)
        };
        let layers = 0..layout.arch.layers();
        let up = |layer: usize| network(encoder.child(layer as u64), ends(layer), d * k);
        let down = |layer: usize| network(decoder.child(layer as u64), d * k, ends(layer));
        let prior = Param::from_tensor(Tensor::zeros([d, k], device));
        Self {
            encoder: layers.clone().map(up).collect(),
            decoder: layers.map(down).collect(),
            prior: prior.set_require_grad(layout.prior == Prior::Learned),
            layout,
        }
    }

    /// The same model with the biases of the pixels at the logits of their means.
    #[must_use]
    pub fn with_pixel_means(mut self, means: &[f32], device: &Device) -> Self {
        let logit = |mean: &f32| {
            let mean = mean.clamp(0.001, 0.999);
            (mean / (1.0 - mean)).ln()
        };
        let bias: Vec<f32> = means.iter().map(logit).collect();
        self.decoder[0].set_last_bias(&bias, device);
        self
    }

    /// Moves the model out and leaves one without networks behind. An optimiser changes parameters in
    /// place only if nobody else holds them.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self {
            encoder: Vec::new(),
            decoder: Vec::new(),
            prior: self.prior.clone(),
            layout: self.layout,
        };
        std::mem::replace(self, empty)
    }

    /// Inputs and outputs of all layers of all networks, from the one that sees the images on.
    pub(super) fn layer_shapes(&self) -> Vec<[usize; 2]> {
        let networks = self.encoder.iter().chain(&self.decoder);
        let layers = networks.flat_map(|network| &network.layers);
        layers.map(|layer| layer.weight.val().dims()).collect()
    }

    /// The layers of latent variables.
    pub fn layers(&self) -> usize {
        self.encoder.len()
    }

    /// The law of layer `below.len()` given the encoder's view of the images, `[batch, pixels]`, and
    /// samples `[n, batch, d, k]` of the layers below.
    ///
    /// # Errors
    ///
    /// Those of [`Law::new`].
    pub fn posterior(&self, input: &Input, below: &[Tensor<4>]) -> Result<Law> {
        let encoder = &self.encoder[below.len()];
        self.law(match below.last() {
            None => encoder.forward_input(input),
            Some(z) => encoder.forward(self.rows(z.clone())),
        })
    }

    /// The law of layer `layer` given samples of the one above, of `n batch` elements.
    fn conditional(&self, layer: usize, above: Tensor<4>) -> Result<Law> {
        self.law(self.decoder[layer + 1].forward(self.rows(above)))
    }

    /// The logits `[n batch, pixels]` of the pixels given samples of the lowest layer.
    pub fn pixels(&self, z: Tensor<4>) -> Tensor<2> {
        self.decoder[0].forward(self.rows(z))
    }

    /// `log p(z)` `[n, batch]` of samples `[n, batch, d, k]` of all layers.
    ///
    /// # Errors
    ///
    /// Those of [`Law::new`].
    pub fn log_prior(&self, z: &[Tensor<4>]) -> Result<Tensor<2>> {
        let [d, k] = self.layout.dims;
        let top = z.last().expect("a layer").clone();
        let [n, batch, ..] = top.dims();
        let uniform = self.layout.prior == Prior::Fixed && self.layout.family != Family::Poisson;
        let mut sum = if uniform {
            // Also between the hard values, where probabilities are continued linearly.
            let log = -(d as f64) * (k.max(2) as f64).ln();
            Tensor::full([n, batch], log, &top.device().inner())
        } else {
            let law = Law::new(self.layout.family, self.prior.val().unsqueeze())?;
            law.log_prob(top.reshape([n * batch, 1, d, k]))
                .reshape([n, batch])
        };
        for (layer, pair) in z.windows(2).enumerate() {
            let law = self.conditional(layer, pair[1].clone())?;
            let below = pair[0].clone().reshape([1, n * batch, d, k]);
            sum = sum + law.log_prob(below).reshape([n, batch]);
        }
        Ok(sum)
    }

    /// Samples `[n, 1, d, k]` of the lowest layer from the prior.
    ///
    /// # Errors
    ///
    /// Those of [`Law::new`].
    pub fn dream(&self, key: Key, n: usize) -> Result<Tensor<4>> {
        let law = Law::new(self.layout.family, self.prior.val().unsqueeze())?;
        let mut z = law.sample(key.child(0), n);
        for layer in (0..self.layers() - 1).rev() {
            let law = self.conditional(layer, z)?;
            z = law.sample(key.child(1 + layer as u64), 1).swap_dims(0, 1);
        }
        Ok(z)
    }

    fn law(&self, natural: Tensor<2>) -> Result<Law> {
        let [d, k] = self.layout.dims;
        let rows = natural.dims()[0];
        Law::new(self.layout.family, natural.reshape([rows, d, k]))
    }

    /// Samples `[n, batch, d, k]` as networks see them, `[n batch, d k]`.
    fn rows(&self, z: Tensor<4>) -> Tensor<2> {
        let [n, batch, d, k] = z.dims();
        let rows = z.reshape([n * batch, d * k]);
        match self.layout.latent_inputs {
            Centring::Signed => rows * 2.0 - 1.0,
            Centring::None | Centring::Mean => rows,
        }
    }
}
