//! What all mutants share: a configuration with a mistake and a number of draws.

/// Declares a mutant by the facts in which mutants differ, and `subject(mistake)`.
macro_rules! mutant {
    (
        $method:ident { $($fields:tt)* }, samples = $samples:literal,
        id: $id:literal,
        families: $families:expr,
        $(objective: $objective:ident,)?
        bias: $bias:ident $(on $exact_on:literal)?,
        needs: $needs:tt,
        price: $price:tt,
        noise: $noise:ident,
        $(weighted: $weighted:literal,)?
        layers: $layers:ident,
        $(learns: $learns:ident,)?
        $(least: $least:literal,)?
    ) => {
        straightflow::method! {
            /// Wrong on purpose.
            pub struct $method { $($fields)* }

            options Config {
                /// Which mistake, or `none`.
                mistake: Mistake = Mistake::None,
                /// The number of draws n of one estimate.
                samples: usize = $samples,
            }

            facts {
                id: $id,
                name: $id,
                families: $families,
                $(objective: $objective,)?
                bias: $bias $(on $exact_on)?,
                needs: $needs,
                price: $price,
                reference: "none: it is wrong",
                layers: $layers,
                noise: $noise,
                $(weighted: $weighted,)?
                $(learns: $learns,)?
                $(least: $least,)?
            }
        }

        /// A subject with a mistake, or without.
        fn subject(mistake: Mistake) -> crate::subject::Subject {
            crate::subject::Subject::new(move || {
                let config = Config {
                    mistake,
                    ..Default::default()
                };
                let estimator = straightflow::estimator::EstimatorConfig::init(config);
                Box::new(estimator.expect("a valid configuration"))
            })
        }
    };
}

pub(super) use mutant;
