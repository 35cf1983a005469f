//! Every method of the registry in the situations of real models, one row for each: a cost with a
//! skip connection, a cost that ignores z, parameters of rank 4, a batch of one element. Each gives
//! the right gradient or the named error.
//!
//! The gradient is right if its expectation over all noise is the exact gradient, or the published
//! target of a biased method. Where the noise cannot be enumerated, it is that of a plain call with
//! the same noise, which the statistical check of the suite compares with the target.

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::Law;
use straightflow::estimator::{Entry, Estimator, Need, Noise, REGISTRY};
use straightflow::prelude::*;
use straightflow_conformance::enumeration::moments_of;
use straightflow_conformance::gradients::{error, gradient_from_noise, replayed, tensor, to_vec};
use straightflow_conformance::problem::{Problem, problems};
use straightflow_conformance::subject::Subject;

/// Relative to the larger of 1 and the target.
const TOLERANCE: f64 = 1e-9;

/// A method, a variable and a cost that is neither linear, nor quadratic, nor symmetric.
struct Case {
    entry: &'static Entry,
    subject: Subject,
    problem: Problem,
}

/// From the noise of an estimate of a law to the gradient of each batch element.
type Gradient<'a> = &'a dyn Fn(Vec<Tensor<4>>, &Law) -> Result<Vec<f64>>;

type Situation = (&'static str, fn(&Case) -> std::result::Result<(), String>);

const SITUATIONS: &[Situation] = &[
    ("a skip connection", skip_connection),
    ("a cost that ignores z", ignores_z),
    ("parameters of rank 4", rank_4),
    ("a batch of one element", one_element),
];

#[test]
fn every_method_is_right_or_refuses_in_every_situation() {
    let mut failures = Vec::new();
    let mut rows = 0;
    for entry in REGISTRY.iter().copied() {
        let variants = [entry.id.to_owned(), "relax:control=sum".to_owned()];
        let variants = variants
            .iter()
            .take(if entry.id == "relax" { 2 } else { 1 });
        for (spec, kind) in variants.flat_map(|spec| entry.families.iter().map(move |k| (spec, k)))
        {
            let spec: Spec = spec.parse().expect("a spec");
            let of_kind = problems(*kind).into_iter();
            let mut bent = of_kind.filter(|problem| problem.objective.name == "oscillating");
            let case = Case {
                entry,
                subject: Subject::new(move || entry.build_spec(&spec).expect("valid")),
                problem: bent.next().expect("there is one"),
            };
            for (name, situation) in SITUATIONS {
                rows += 1;
                if let Err(found) = situation(&case) {
                    failures.push(format!("{} {kind}, {name}: {found}", case.subject.spec));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(rows > 4 * REGISTRY.len(), "{rows}");
}

impl Case {
    fn cost(&self, z: Tensor<4>) -> Tensor<2> {
        self.problem.objective.cost(z)
    }

    /// The plain call: samples of canonical shape, several batch elements, no context.
    fn plain(&self, noise: Vec<Tensor<4>>, law: &Law) -> Result<Vec<f64>> {
        let cost = |z| self.cost(z);
        gradient_from_noise(self.subject.estimator().as_ref(), noise, law, &cost)
    }

    /// The expectation of a gradient is the target plus `extra`, or the gradient is that of the
    /// plain call plus `extra`.
    fn is_right(&self, gradient: Gradient<'_>, extra: f64) -> std::result::Result<(), String> {
        let estimator = self.subject.estimator();
        let moments = moments_of(estimator.as_ref(), &self.problem, gradient)?;
        let (got, want, tolerance) = match moments {
            Some(moments) => {
                let expected = self.subject.expected(&self.problem);
                let expected = expected.map_err(|failure| failure.to_string())?;
                // What was sampled itself cannot be compared so sharply.
                let sampled = expected.error.iter().fold(0.0, |m: f64, x| m.max(*x));
                (moments.mean, expected.mean, TOLERANCE + 6.0 * sampled)
            }
            None => {
                let law = self.problem.law(5);
                let noise = || draw(estimator.as_ref(), &law);
                let plain = self
                    .plain(noise(), &law)
                    .map_err(|error| error.to_string())?;
                let got = gradient(noise(), &law).map_err(|error| error.to_string())?;
                (got, plain, TOLERANCE)
            }
        };
        let want: Vec<f64> = want.iter().map(|x| x + extra).collect();
        match error(&got, &want) <= tolerance {
            true => Ok(()),
            false => Err(format!("gradient {got:?}, should be {want:?}")),
        }
    }
}

fn draw(estimator: &dyn Estimator, law: &Law) -> Vec<Tensor<4>> {
    let specs = estimator.noise(law, estimator.draws());
    let noise = Noise::draw(Key::new(5), law, &specs);
    (0..specs.len()).map(|i| noise.get(i)).collect()
}

/// The encoder makes the natural parameters and features of them, which the cost has as context.
fn skip_connection(case: &Case) -> std::result::Result<(), String> {
    const SLOPE: f64 = 0.3;
    let gradient = |noise: Vec<Tensor<4>>, law: &Law| {
        let estimator = case.subject.estimator();
        replayed(estimator.as_ref(), noise, law, |replay| {
            let encoder = leaf(law.natural());
            // Behind an operation, so that a pass on the side would consume the tape.
            let natural = encoder.clone() * 1.0;
            let features = natural.clone() * SLOPE;
            // A direct term with a gradient and without a value, so that draws keep their costs.
            let value = features.clone().inner();
            let q = Law::new(law.family(), natural)?;
            let batch = law.dims()[0];
            let single = Single::new(&q, features, |z: Tensor<4>, _: &Law, features| {
                let direct: Tensor<3> = features - value.clone();
                let direct: Tensor<2> = direct.sum_dims(&[1, 2]).reshape([1, batch]);
                case.cost(z) + direct
            });
            let estimate =
                replay.estimate_objective(Key::new(0), &single.of_kind(case.entry.objective))?;
            let grads = estimate.surrogate.backward();
            let gradient = encoder.grad(&grads).expect("the encoder has a gradient");
            Ok(to_vec(gradient * batch as f64))
        })
    };
    case.is_right(&gradient, SLOPE)
}

/// Zero on average, or `NoGradient` from a method that differentiates the cost.
fn ignores_z(case: &Case) -> std::result::Result<(), String> {
    let needs_gradient =
        case.entry.needs.contains(&Need::Gradient) || case.subject.spec.contains("control=sum");
    let cost = |z: Tensor<4>| {
        let [n, batch, ..] = z.dims();
        tensor(vec![7.0; n * batch], [n, batch], DType::F64)
    };
    let estimator = case.subject.estimator();
    let gradient = |noise: Vec<Tensor<4>>, law: &Law| {
        gradient_from_noise(case.subject.estimator().as_ref(), noise, law, &cost)
    };
    if needs_gradient {
        let law = case.problem.law(3);
        return match gradient(draw(estimator.as_ref(), &law), &law) {
            Err(Error::NoGradient) => Ok(()),
            other => Err(format!("should be refused by `NoGradient`, got {other:?}")),
        };
    }
    let moments = moments_of(estimator.as_ref(), &case.problem, gradient)?;
    let mean = match moments {
        Some(moments) => moments.mean,
        // Antithetic differences and control variates are zero for every draw.
        None => {
            let law = case.problem.law(3);
            let gradient = gradient(draw(estimator.as_ref(), &law), &law);
            let gradient = gradient.map_err(|error| error.to_string())?;
            if !["arm", "disarm", "arms"].contains(&case.entry.id) {
                return unbiased(case, &cost);
            }
            gradient
        }
    };
    match error(&mean, &vec![0.0; mean.len()]) <= TOLERANCE {
        true => Ok(()),
        false => Err(format!("gradient {mean:?} of a constant")),
    }
}

/// The mean over 4000 batch elements is zero within six standard errors: a false alarm has
/// probability 2e-9 for each number.
fn unbiased(case: &Case, cost: &dyn Fn(Tensor<4>) -> Tensor<2>) -> std::result::Result<(), String> {
    const ROWS: usize = 4000;
    let law = case.problem.law(ROWS);
    let estimator = case.subject.estimator();
    let noise = draw(estimator.as_ref(), &law);
    let each = gradient_from_noise(estimator.as_ref(), noise, &law, cost);
    let each = each.map_err(|error| error.to_string())?;
    let k = each.len() / ROWS;
    for j in 0..k {
        let column = || each.iter().skip(j).step_by(k);
        let mean = column().sum::<f64>() / ROWS as f64;
        let square = column().map(|g| (g - mean).powi(2)).sum::<f64>();
        let deviation = (square / ROWS as f64 / ROWS as f64).sqrt();
        if mean.abs() > 6.0 * deviation + TOLERANCE {
            return Err(format!("gradient {mean} +- {deviation} of a constant"));
        }
    }
    Ok(())
}

/// Any family with parameters `[batch, d, 1, k]`.
#[derive(Clone, Debug)]
struct Maps(Law);

impl Distribution for Maps {
    type Parameters = Tensor<4>;
    type Samples = Tensor<5>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }

    fn element(law: &Law) -> Vec<usize> {
        let [_, d, k] = law.dims();
        vec![d, 1, k]
    }
}

fn rank_4(case: &Case) -> std::result::Result<(), String> {
    let gradient = |noise: Vec<Tensor<4>>, law: &Law| {
        let estimator = case.subject.estimator();
        replayed(estimator.as_ref(), noise, law, |replay| {
            let single = Maps(law.clone());
            let single = Single::new(&single, (), |z: Tensor<5>, q: &Maps, ()| {
                assert_eq!(q.natural().dims()[2], 1, "[batch, d, 1, k]");
                case.cost(z.squeeze_dim(3))
            });
            let gradient = replay.gradient_of(Key::new(0), &single.of_kind(case.entry.objective));
            gradient.map(to_vec)
        })
    };
    case.is_right(&gradient, 0.0)
}

/// The same gradient as in a batch of several, whose expectation is right.
fn one_element(case: &Case) -> std::result::Result<(), String> {
    let fail = |error: Error| error.to_string();
    let plain = |noise: Vec<Tensor<4>>, law: &Law| case.plain(noise, law);
    case.is_right(&plain, 0.0)?;
    let batch = 6;
    let law = case.problem.law(batch);
    let noise = draw(case.subject.estimator().as_ref(), &law);
    let whole = case.plain(noise.clone(), &law).map_err(fail)?;
    let k = whole.len() / batch;
    for element in 0..batch {
        let own = noise
            .iter()
            .map(|x| x.clone().narrow(1, element, 1))
            .collect();
        let alone = case.plain(own, &case.problem.law(1)).map_err(fail)?;
        let want = &whole[element * k..(element + 1) * k];
        if error(&alone, want) > 1e-12 {
            return Err(format!("alone {alone:?}, among {batch} {want:?}"));
        }
    }
    Ok(())
}

fn leaf(natural: Tensor<3>) -> Tensor<3> {
    let device = Device::flex().autodiff();
    let data = natural.into_data();
    Tensor::from_data(data, (&device, DType::F64)).require_grad()
}
