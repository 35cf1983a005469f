//! `method!`: what a method says about itself, written once.

/// Declares a method: its type, its configuration and its facts.
///
/// ```text
/// method! {
///     /// The rustdoc of the method; the facts are added to it.
///     pub struct Disarm {}                    // fields besides `config`, each with a default
///
///     options DisarmConfig {
///         /// The number of pairs.            // also in `list` and in the docs
///         samples: usize = 1,                 // a default
///         /// The decay.
///         decay: f64 [0.0..1.0] = 0.9,        // and a range
///     }
///
///     facts {
///         id: "disarm",                       // in specifications
///         name: "DisARM",                     // in tables
///         families: &[FamilyKind::Bernoulli],
///         bias: none,                         // or: exact on "linear f"
///         needs: [Value],                     // of the cost: Value, Gradient
///         price: [2, 0],                      // f and df for each draw, or a text
///         reference: "Dong, Mnih, Tucker 2020, arXiv 2006.10680",
///         layers: Layerwise,                  // or Tape (its samples can be drawn), Own
///     }
/// }
/// ```
///
/// After `families` there may be `also: &[..]`, families that some options take and the defaults do
/// not, and `objective: Bound`, if it is not an expectation that is estimated.
/// After `layers` there may be, in this order:
///
/// * `noise: Uniform`: a draw takes uniform numbers, not hard samples;
/// * `relaxed: true`: the cost sees relaxed samples;
/// * `weighted: true`: the draws of an estimate do not count alike, and its value is a weighted mean
///   of their costs;
/// * `learns: own`: some configuration has state, and the method has a function
///   `with_state(&self, &State, Option<Tensor<2>>) -> Result<Self>` that attaches it; in this crate
///   `attached`, with a field of that name;
/// * `least: 2`: the least number of draws;
/// * `draws: 1`: the number of draws of a method without the option `samples`;
/// * `step: temperature`: the option follows a schedule, or `step: field` for a method with the
///   field `step`;
/// * `presets: &[..]`: named choices of options;
/// * `aliases: &[..]`: other names that a specification may use;
/// * `check: |config| ..`: what ranges cannot say about the options.
///
/// The macro makes the configuration with its defaults, its checks and a builder `with_<option>`
/// for each option, the static `ENTRY`, and the implementation of
/// [`Described`](crate::estimator::Described). The author adds that of
/// [`Estimator`](crate::estimator::Estimator) and, for `Tape` and `Own`, that of
/// [`Pathwise`](crate::estimator::Pathwise) or [`Stacked`](crate::estimator::Stacked).
#[macro_export]
macro_rules! method {
    (
        $(#[$meta:meta])*
        pub struct $method:ident { $($field:ident: $field_type:ty),* $(,)? }

        options $config:ident {
            $(
                $(#[doc = $about:expr])*
                $option:ident: $type:ty $([$range:expr])? = $default:expr
            ),* $(,)?
        }

        facts {
            id: $id:literal,
            name: $name:literal,
            families: $families:expr,
            $(also: $also:expr,)?
            $(objective: $objective:ident,)?
            bias: $bias:ident $(on $exact_on:literal)?,
            needs: [$($need:ident),*],
            price: $price:tt,
            reference: $reference:literal,
            layers: $layers:ident,
            $(noise: $noise:ident,)?
            $(relaxed: $relaxed:literal,)?
            $(weighted: $weighted:literal,)?
            $(learns: $learns:ident,)?
            $(least: $least:literal,)?
            $(draws: $draws:literal,)?
            $(step: $step:ident,)?
            $(presets: $presets:expr,)?
            $(aliases: $aliases:expr,)?
            $(check: $check:expr,)?
        }
    ) => {
        pub(crate) static ENTRY: $crate::estimator::Entry =
            $crate::estimator::Entry::new::<$config>($crate::estimator::About {
                id: $id,
                name: $name,
                families: $families,
                also: $crate::method!(@or $([$also])? [&[]]),
                objective: $crate::method!(@objective $($objective)?),
                bias: $crate::method!(@bias $bias $($exact_on)?),
                needs: &[$($crate::estimator::Need::$need),*],
                price: $crate::method!(@price $price),
                noise: $crate::method!(@noise $($noise)?),
                layers: $crate::estimator::Layers::$layers,
                hard: !(false $(|| $relaxed)?),
                weighted: false $(|| $weighted)?,
                learns: $crate::method!(@learns $($learns)?),
                least_samples: 1 $(- 1 + $least)?,
                reference: $reference,
                options: &[$(
                    $crate::estimator::OptionFacts {
                        field: stringify!($option),
                        text: concat!($($about),*),
                        range: || $crate::method!(@range $($range)?),
                    }
                ),*],
                presets: $crate::method!(@or $([$presets])? [&[]]),
                aliases: $crate::method!(@or $([$aliases])? [&[]]),
            });

        #[doc = concat!("The configuration of [`", stringify!($method), "`].")]
        #[derive(Clone, Debug, PartialEq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(
            crate = "straightflow::serde",
            deny_unknown_fields,
            default,
            rename_all = "kebab-case"
        )]
        pub struct $config {
            $($(#[doc = $about])* pub $option: $type,)*
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $($option: $default),* }
            }
        }

        $crate::pastey::paste! {
            impl $config {
                $(
                    #[doc = concat!("The same, with this value of `", stringify!($option), "`.")]
                    #[must_use]
                    pub fn [<with_ $option>](mut self, $option: $type) -> Self {
                        self.$option = $option;
                        self
                    }
                )*
            }
        }

        impl $crate::estimator::EstimatorConfig for $config {
            type Estimator = $method;

            fn init(self) -> $crate::Result<$method> {
                $($(ENTRY.need(stringify!($option), &self.$option, $range)?;)?)*
                $(
                    let check: fn(&Self) -> $crate::Result<()> = $check;
                    check(&self)?;
                )?
                let method = $method { config: self, $($field: Default::default()),* };
                let least = $crate::estimator::Estimator::least_samples(&method);
                ENTRY.need_samples($crate::estimator::Described::draws(&method), least)?;
                Ok(method)
            }
        }

        $(#[$meta])*
        ///
        /// # Facts
        ///
        /// | | |
        /// |---|---|
        #[doc = concat!("| specification | `", $id, "` |")]
        #[doc = concat!("| bias | ", $crate::method!(@bias_text $bias $($exact_on)?), " |")]
        #[doc = concat!("| price | ", $crate::method!(@price_text $price), " |")]
        #[doc = concat!("| reference | ", $reference, " |")]
        #[derive(Clone, Debug)]
        pub struct $method {
            config: $config,
            $($field: $field_type),*
        }

        impl Default for $method {
            fn default() -> Self {
                let method = $crate::estimator::EstimatorConfig::init($config::default());
                method.expect("the defaults are valid")
            }
        }

        impl $crate::estimator::Described for $method {
            fn entry(&self) -> &'static $crate::estimator::Entry {
                &ENTRY
            }

            fn config(&self) -> $crate::serde_json::Value {
                ENTRY.record(&self.config)
            }

            // An option `draws` may mean something else: the draws of an estimate are `samples`.
            #[allow(clippy::misnamed_getters)]
            fn draws(&self) -> usize {
                $crate::method!(@or $([$draws])? [self.config.samples])
            }

            fn stacking(&self) -> $crate::estimator::Stacking<'_> {
                $crate::method!(@stacking $layers self)
            }

            fn at_step(&self, _step: u64) -> $crate::Result<Box<dyn $crate::estimator::Estimator>> {
                #[allow(unused_mut)]
                let mut method = self.clone();
                $crate::method!(@step method _step $($step)?);
                Ok(Box::new(method))
            }

            $crate::method!(@bind $($learns)?);
        }
    };

    (@objective) => { $crate::objective::ObjectiveKind::Expectation };
    (@objective $kind:ident) => { $crate::objective::ObjectiveKind::$kind };
    (@noise) => { $crate::estimator::NoiseLaw::Samples };
    (@noise $law:ident) => { $crate::estimator::NoiseLaw::$law };
    (@bias none) => { $crate::estimator::Bias::Unbiased };
    (@bias none $costs:literal) => { $crate::estimator::Bias::UnbiasedOn { costs: $costs } };
    (@bias exact $exact_on:literal) => {
        $crate::estimator::Bias::Biased { exact_on: $exact_on }
    };
    (@bias_text none) => { "none" };
    (@bias_text none $costs:literal) => { concat!("none on ", $costs) };
    (@bias_text exact $exact_on:literal) => { concat!("unbiased only on ", $exact_on) };
    (@price [$f:literal, $df:literal]) => {
        $crate::estimator::PriceRule::PerDraw { evaluations: $f, gradients: $df }
    };
    (@price $text:literal) => { $crate::estimator::PriceRule::Own($text) };
    (@price_text [$f:literal, 0]) => { concat!($f, " f for each draw") };
    (@price_text [$f:literal, $df:literal]) => { concat!($f, " f and ", $df, " df for each draw") };
    (@price_text $text:literal) => { $text };
    (@learns) => { false };
    (@learns $how:ident) => { true };
    (@bind) => {};
    (@bind attached) => {
        fn bind(
            &self,
            state: &$crate::estimator::State,
            input: Option<burn::tensor::Tensor<2>>,
        ) -> $crate::Result<Box<dyn $crate::estimator::Estimator>> {
            let mut method = self.clone();
            let lacks = |state: &$crate::estimator::LayerState| self.lacks(state);
            method.attached.attach(&ENTRY, self.learns(), state, input, lacks)?;
            Ok(Box::new(method))
        }

        fn at_layer(&self, layer: usize) -> Option<Box<dyn $crate::estimator::Estimator>> {
            // Without a state for the layer the estimate says so.
            let mut method = self.clone();
            method.attached = self.attached.only(layer);
            Some(Box::new(method))
        }
    };
    (@bind own) => {
        fn bind(
            &self,
            state: &$crate::estimator::State,
            input: Option<burn::tensor::Tensor<2>>,
        ) -> $crate::Result<Box<dyn $crate::estimator::Estimator>> {
            Ok(Box::new(self.with_state(state, input)?))
        }
    };
    (@range) => { None };
    (@range $range:expr) => { Some($crate::estimator::describe_range($range)) };
    (@or [$first:expr] $([$otherwise:expr])?) => { $first };
    (@stacking Tape $self:ident) => { $crate::estimator::Stacking::Tape($self) };
    (@stacking Own $self:ident) => { $crate::estimator::Stacking::Own($self) };
    (@stacking Unsupported $self:ident) => { $crate::estimator::Stacking::Unsupported };
    (@stacking Layerwise $self:ident) => { $crate::estimator::Stacking::Layerwise };
    (@step $method:ident $step:ident) => {};
    (@step $method:ident $step:ident field) => { $method.step = $step; };
    (@step $method:ident $step:ident $option:ident) => {
        $method.config.$option = $method.config.$option.at($step);
    };
}
