//! The functions that everything else is made of: the premise of the tolerances.

use burn::tensor::{DType, Tensor, activation};
use libtest_mimic::{Failed, Trial};
use straightflow_conformance::gradients::to_vec;

use crate::places::{Place, UNIT, WORSE};

/// A function of tensors, where it is looked at, and the size below which an error is not relative any more.
struct Function {
    name: &'static str,
    tensor: fn(Tensor<1>) -> Tensor<1>,
    from: f64,
    to: f64,
    least: f64,
}

const FUNCTIONS: &[Function] = &[
    Function {
        name: "exp",
        tensor: |x| x.exp(),
        from: -6.0,
        to: 6.0,
        least: 0.0,
    },
    Function {
        name: "log",
        tensor: |x| x.log(),
        from: 1e-3,
        to: 400.0,
        least: 1.0,
    },
    Function {
        name: "log1p",
        tensor: |x| x.log1p(),
        from: -0.9,
        to: 400.0,
        least: 1.0,
    },
    Function {
        name: "sigmoid",
        tensor: activation::sigmoid,
        from: -6.0,
        to: 6.0,
        least: 0.0,
    },
    Function {
        name: "log-sigmoid",
        tensor: activation::log_sigmoid,
        from: -6.0,
        to: 6.0,
        least: 1.0,
    },
    Function {
        name: "tanh",
        tensor: |x| x.tanh(),
        from: -6.0,
        to: 6.0,
        least: 1.0,
    },
    Function {
        name: "sin",
        tensor: |x| x.sin(),
        from: -20.0,
        to: 20.0,
        least: 1.0,
    },
    Function {
        name: "cos",
        tensor: |x| x.cos(),
        from: -20.0,
        to: 20.0,
        least: 1.0,
    },
    Function {
        name: "sqrt",
        tensor: |x| x.sqrt(),
        from: 1e-3,
        to: 400.0,
        least: 0.0,
    },
    Function {
        name: "recip",
        tensor: |x| x.recip(),
        from: 1e-3,
        to: 400.0,
        least: 0.0,
    },
];

/// One test for each function.
pub fn trials() -> Vec<Trial> {
    let trial = |function: &'static Function| {
        Trial::test(format!("function::{}", function.name), || {
            function.is_accurate()
        })
    };
    FUNCTIONS.iter().map(trial).collect()
}

impl Function {
    fn is_accurate(&self) -> Result<(), Failed> {
        const POINTS: usize = 1000;
        // Numbers that single precision has.
        let step = (self.to - self.from) / (POINTS - 1) as f64;
        let x = (0..POINTS).map(|i| f64::from((self.from + step * i as f64) as f32));
        let x: Vec<f64> = x.collect();
        let at = |place: Place| to_vec((self.tensor)(place.tensor(x.clone(), [POINTS])));
        let (got, want) = (at(Place::device()), at(Place::cpu(DType::F64)));
        let units =
            |(got, want): (&f64, &f64)| (got - want).abs() / (want.abs().max(self.least) * UNIT);
        let worst = got.iter().zip(&want).map(units).enumerate();
        let (index, worst) = worst
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .expect("there are points");
        match worst <= WORSE {
            true => Ok(()),
            false => Err(Failed::from(format!(
                "{worst:.1} units in the last place at {}: {}, should be {}",
                x[index], got[index], want[index]
            ))),
        }
    }
}
