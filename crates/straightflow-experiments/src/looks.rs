//! One look for each method, the same in every plot.

/// Methods in the order of their looks: the first eight differ in colour and in dashes, and those that
/// are plotted together are among them or in different columns. A longer specification that begins with
/// one of these is a variant of it.
const METHODS: [&str; 25] = [
    "straight-through",
    "pwgf:preset=paper",
    "second-order-st",
    "debiased-st",
    "arms",
    "disarm",
    "arm",
    "reinforce",
    "fini",
    "pwgf",
    "reinmax",
    "debiased-st:choice=variance",
    "muprop",
    "relax",
    "arm:preset=paper",
    "rebar",
    "gumbel-softmax",
    "pwgf:preset=paper,gain",
    "enumerate",
    "debiased-st:preset",
    "double-cv",
    "gumbel-rao",
    "exponential-arrival",
    "finite-difference",
    "matched:straight-through",
];

/// The number by which plots give an estimator its colour and dashes; none for one that has no look of
/// its own.
pub fn look(spec: &str) -> Option<usize> {
    let is_variant = |method: &str| {
        let rest = spec.strip_prefix(method);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ',', '=']))
    };
    let known = METHODS.iter().enumerate();
    let known = known.filter(|(_, method)| is_variant(method));
    known
        .max_by_key(|(_, method)| method.len())
        .map(|(look, _)| look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_looks_like_its_nearest_relative() {
        assert_eq!(
            look("straight-through:samples=200"),
            look("straight-through")
        );
        assert_eq!(
            look("pwgf:preset=paper,samples=200"),
            look("pwgf:preset=paper")
        );
        assert_ne!(look("pwgf:preset=paper"), look("pwgf"));
        assert_ne!(look("arms"), look("arm"));
        assert_ne!(look("matched:straight-through"), look("straight-through"));
        assert_eq!(look("unheard-of"), None);
    }
}
