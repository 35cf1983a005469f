//! Everything that can be wrong, one variant for each violated condition.

use burn::tensor::DType;

use crate::distribution::FamilyKind;
use crate::objective::ObjectiveKind;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was wrong with a parameter, a cost, a configuration or a specification.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "a field is what the message says of it")]
pub enum Error {
    /// A parameter tensor without elements.
    #[error(
        "the parameters of a {family} distribution have shape {shape:?}, but no dimension may be 0"
    )]
    EmptyShape {
        family: FamilyKind,
        shape: Vec<usize>,
    },

    /// A categorical variable with a single category or none.
    #[error("a categorical variable needs at least 2 categories, got logits of shape {shape:?}")]
    TooFewCategories {
        /// The shape of the logits, `[batch, d, k]`.
        shape: Vec<usize>,
    },

    /// A binomial distribution without trials.
    #[error("a binomial distribution needs at least 1 trial")]
    NoTrials,

    /// A dispersion that is not a positive number.
    #[error(
        "the dispersion of a negative binomial distribution must be positive and finite, got \
         {dispersion}"
    )]
    Dispersion { dispersion: f64 },

    /// A subset that is larger than what it is taken from.
    #[error("a subset of {items} items cannot have {size} of them")]
    SubsetSize { size: usize, items: usize },

    /// A lattice that cannot be rounded to.
    #[error("the {option} of a lattice is {value}: it must be {allowed}")]
    Lattice {
        option: &'static str,
        value: f64,
        allowed: &'static str,
    },

    /// Means of a family whose natural parameters do not follow from them by a formula.
    #[error("the natural parameters of a {family} distribution do not follow from its means")]
    NoNatural { family: FamilyKind },

    /// A parameter value that no distribution has.
    #[error(
        "the {parameter} of a {family} distribution at index {index:?} is {value}: it must be \
         {allowed}"
    )]
    Parameter {
        family: FamilyKind,
        /// What the value is: a logit, a rate, ...
        parameter: &'static str,
        /// `[batch, d]`, or `[batch, d, k]` for a categorical variable.
        index: Vec<usize>,
        value: f64,
        allowed: &'static str,
    },

    /// A quantity that has no closed form for a family.
    #[error(
        "the {quantity} of a {family} distribution has no closed form; `exact` computes it by \
         enumeration"
    )]
    NoClosedForm {
        quantity: &'static str,
        family: FamilyKind,
    },

    /// Two distributions between which a divergence is not defined or not finite.
    #[error(
        "a divergence needs two distributions of one family, shape and size, got {left} and {right}"
    )]
    Mismatch { left: String, right: String },

    /// An enumeration that would take too long.
    #[error("enumeration would visit {states:.3e} states, more than the limit of {limit}")]
    TooManyStates {
        /// The number of states; infinite if it cannot be represented.
        states: f64,
        limit: usize,
    },

    /// A computation on the line for variables that are not ordered.
    #[error("{family} variables are not ordered, so they cannot be moved along a line")]
    Unordered { family: FamilyKind },

    /// A projection that could not be computed.
    #[error(transparent)]
    Projection(#[from] crate::projection::ProjectionError),

    /// An estimator that is not defined for a family.
    #[error(
        "`{estimator}` does not support {family} variables; it supports {}",
        join(supported)
    )]
    UnsupportedFamily {
        estimator: &'static str,
        family: FamilyKind,
        supported: &'static [FamilyKind],
    },

    /// An objective of another kind than the estimator takes.
    #[error("`{estimator}` takes {expected}, got {got}")]
    UnsupportedObjective {
        estimator: &'static str,
        expected: ObjectiveKind,
        got: ObjectiveKind,
    },

    /// A number of samples that an estimator cannot work with.
    #[error("`{estimator}` {}", samples_needed(*needed, *got))]
    TooFewSamples {
        estimator: &'static str,
        needed: usize,
        got: usize,
    },

    /// A law for which an estimator would take too many random numbers.
    #[error(
        "`{estimator}` would take {needed:.3e} random numbers for each variable, more than the \
         limit of {limit}"
    )]
    TooMuchNoise {
        estimator: &'static str,
        /// About how many numbers the largest variable takes.
        needed: f64,
        limit: usize,
    },

    /// Noise of another shape than the estimator declared.
    #[error("the noise `{name}` has shape {got:?}, expected {expected:?}")]
    NoiseShape {
        name: &'static str,
        expected: [usize; 4],
        got: [usize; 4],
    },

    /// Another number of noise tensors than the estimator declared.
    #[error("the estimator takes {expected} noise tensors, got {got}")]
    NoiseCount { expected: usize, got: usize },

    /// Samples of another shape than their distribution has.
    #[error("the samples have shape {got:?}, expected {expected:?}")]
    SampleShape {
        /// `[n, batch, ..]`.
        expected: Vec<usize>,
        got: Vec<usize>,
    },

    /// A sample on the tape of a method that has none.
    #[error(
        "`{estimator}` has no drop-in `draw`: pass the cost to `estimate` instead; for {family} variables \
         these have one: {}",
        drop_ins.join(", ")
    )]
    NoDropIn {
        estimator: &'static str,
        family: FamilyKind,
        drop_ins: Vec<&'static str>,
    },

    /// A cost of the wrong shape.
    #[error(
        "the cost must have shape {expected:?} (one number for each draw and batch element; \
         dimensions of size 1 may follow), got {got:?}"
    )]
    CostShape {
        /// `[n, batch]`.
        expected: [usize; 2],
        got: Vec<usize>,
    },

    /// Parameters of type `f64` on a device that computes functions in single precision only.
    #[error(
        "the device does not compute functions in double precision: use parameters of type f32"
    )]
    DoublePrecision,

    /// A cost that is not a finite number.
    #[error("the cost of draw {draw}, batch element {element} is {value}")]
    NonFiniteCost {
        draw: usize,
        element: usize,
        value: f64,
    },

    /// A cost that does not depend on the samples, where its gradient is needed.
    #[error(
        "the cost has no gradient with respect to the samples: compute it from `z` with tensor \
         operations, and do not detach it"
    )]
    NoGradient,

    /// A cost that captures a distribution of the tape, where it is differentiated on the side.
    #[error(
        "the cost captures `q` or another distribution on the tape, and a backward pass inside the \
         estimator would consume its graph: use the arguments of `estimate_with` instead"
    )]
    CapturedTape,

    /// An estimator with state of its own that was not given any.
    #[error(
        "`{estimator}` learns, so it needs a state: use it through a `Sampler`, which has one, or create \
         one with `init_state` (for several layers `State::stacked`) and attach it with `bind`"
    )]
    MissingState { estimator: &'static str },

    /// State for an estimator that has none.
    #[error("`{estimator}` has no state of its own, so none can be bound to it")]
    NoState { estimator: &'static str },

    /// State without the part that an estimator needs.
    #[error("the state has no {part}, which `{estimator}` needs: another estimator made it")]
    ForeignState {
        estimator: &'static str,
        part: &'static str,
    },

    /// State in another precision than the parameters.
    #[error("the state has numbers of type {state:?}, but the parameters are {parameters:?}")]
    StateDType { state: DType, parameters: DType },

    /// A conditioning input of the wrong shape; none at all has no features.
    #[error("the conditioning input must have shape {expected:?} (batch, features), got {got:?}")]
    InputShape {
        /// `[batch, features]`.
        expected: [usize; 2],
        got: [usize; 2],
    },

    /// Samples of another size than a control network was made for.
    #[error(
        "the control network takes {expected} numbers (features, layers below and sample), got \
         {got}: make its state with the shape of the law"
    )]
    ControlWidth { expected: usize, got: usize },

    /// An estimator that has no rule for stacked variables.
    #[error("`{estimator}` has no rule for several layers of variables{because}")]
    UnsupportedLayers {
        estimator: &'static str,
        /// What of the configuration is in the way: empty, or a clause after a comma.
        because: &'static str,
    },

    /// An objective without layers.
    #[error("an objective needs at least one layer")]
    EmptyChain,

    /// A layer whose law has another number of rows than there are samples below it.
    #[error(
        "layer {layer} has parameters for {got} rows, expected {expected}: one for each draw and \
         batch element, draw by draw"
    )]
    LayerRows {
        /// The layer, from 0.
        layer: usize,
        /// Draws times batch elements.
        expected: usize,
        got: usize,
    },

    /// A specification that is not of the form `id` or `id:key=value,key=value`.
    #[error("`{spec}` is not an estimator specification: write `id` or `id:key=value,key=value`")]
    MalformedSpec { spec: String },

    /// An estimator id that is not in the registry.
    #[error("there is no estimator `{id}`; {}", suggest(near))]
    UnknownEstimator { id: String, near: Near },

    /// An option that the estimator does not have.
    #[error("`{estimator}` has no option `{key}`; {}", suggest(near))]
    UnknownOption {
        estimator: String,
        key: String,
        near: Near,
    },

    /// An option value of the wrong type or out of its range.
    #[error("`{estimator}`: {message}")]
    InvalidOption {
        estimator: &'static str,
        /// What is wrong, in one clause.
        message: String,
    },

    /// A layer of [`nn`](crate::nn) that cannot be made, or not from this data.
    #[error("`{layer}`: `{option}` is {value}, but must be {allowed}")]
    InvalidLayer {
        layer: &'static str,
        option: &'static str,
        value: String,
        allowed: &'static str,
    },
}

fn join(kinds: &[FamilyKind]) -> String {
    let names: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn samples_needed(needed: usize, got: usize) -> String {
    match needed {
        1 => format!("needs at least 1 sample, got {got}"),
        _ => format!(
            "needs at least {needed} samples with these options, got {got}; set `samples={needed}`"
        ),
    }
}

fn suggest(near: &Near) -> String {
    match near {
        Near::Similar(words) => format!("did you mean {}?", words.join(", ")),
        Near::Several(words) => format!("separate names by spaces: {}", words.join(" ")),
        Near::All(words) => format!("choose from {}", words.join(", ")),
    }
}

/// The known words nearest to an unknown one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Near {
    /// Some look like it.
    Similar(Vec<String>),
    /// It is several of them, with commas in between.
    Several(Vec<String>),
    /// None does; these are all.
    All(Vec<String>),
}
