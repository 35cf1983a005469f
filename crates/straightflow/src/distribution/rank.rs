//! From the shapes that users see to the canonical ones and back.
//!
//! A user's parameters have any rank from 1 to 6, the first dimension being the batch; estimators
//! work with `[batch, d, k]`. Rank + 1, the rank of several samples, cannot be computed in stable
//! Rust, so a macro writes the table down.

use std::fmt::Debug;

use burn::tensor::{Shape, Tensor};

use super::{Distribution, Law};

/// A tensor whose canonical form has `C` dimensions, the last two of which are `[d, k]`.
///
/// The dimensions before those, `[batch]` or `[n, batch]`, are the same in both forms.
pub trait Canonical<const C: usize>: Clone + Debug + Send + 'static {
    /// The dimensions, as [`Tensor::dims`] has them.
    fn sizes(&self) -> Vec<usize>;

    /// To the canonical form; `None` if this is not a tensor of elements of that shape.
    fn into_canonical(self, element: &[usize], last: [usize; 2]) -> Option<Tensor<C>>;

    /// From the canonical form, given the shape of a batch element.
    ///
    /// # Panics
    ///
    /// If an element has another number of values.
    fn from_canonical(canonical: Tensor<C>, element: &[usize]) -> Self;
}

impl<const R: usize, const C: usize> Canonical<C> for Tensor<R> {
    fn sizes(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn into_canonical(self, element: &[usize], last: [usize; 2]) -> Option<Tensor<C>> {
        let dims = self.dims();
        let (front, own) = dims.split_at_checked(C - 2)?;
        (own == element).then(|| reshaped(self, &[front, &last].concat()))
    }

    fn from_canonical(canonical: Tensor<C>, element: &[usize]) -> Self {
        let dims = canonical.dims();
        reshaped(canonical, &[&dims[..C - 2], element].concat())
    }
}

/// The same tensor in another shape. If that is its own, nothing is recorded on the tape.
fn reshaped<const A: usize, const B: usize>(tensor: Tensor<A>, dims: &[usize]) -> Tensor<B> {
    match tensor.dims() == *dims {
        true => Tensor::from_dispatch(tensor.into_dispatch()),
        false => tensor.reshape(Shape::from(dims.to_vec())),
    }
}

/// Parameters of variables that are numbers: `[batch, ..]`, with ranks from 1 to 6.
pub trait Numbers: Canonical<3> {
    /// The type of several samples, `[n, batch, ..]`.
    type Samples: Canonical<4>;
}

/// Parameters of variables that are vectors: `[batch, .., k]`, with ranks from 2 to 6.
pub trait Vectors: Canonical<3> {
    /// The type of several samples, `[n, batch, .., k]`.
    type Samples: Canonical<4>;
}

macro_rules! ranks {
    ($Trait:ident: $($rank:literal $more:literal),*) => {
        $(impl $Trait for Tensor<$rank> {
            type Samples = Tensor<$more>;
        })*
    };
}

ranks!(Numbers: 1 2, 2 3, 3 4, 4 5, 5 6, 6 7);
ranks!(Vectors: 2 3, 3 4, 4 5, 5 6, 6 7);

/// Makes a type whose only field is a [`Law`] a distribution of `Numbers` or `Vectors`, with
/// constructors `of_natural` and `of_means` for its own.
macro_rules! wraps_law {
    (@vectors Numbers) => {
        false
    };
    (@vectors Vectors) => {
        true
    };
    ($Type:ident, $Kind:ident) => {
        impl<const R: usize> $Type<R>
        where
            Tensor<R>: $crate::distribution::$Kind,
        {
            const VECTORS: bool = wraps_law!(@vectors $Kind);

            fn of_natural(family: Family, natural: Tensor<R>) -> Result<Self> {
                Law::of_rank(family, natural, Self::VECTORS, Law::new).map(Self)
            }

            #[allow(dead_code, reason = "not every family can be given by its means")]
            fn of_means(family: Family, means: Tensor<R>) -> Result<Self> {
                Law::of_rank(family, means, Self::VECTORS, Law::from_means).map(Self)
            }
        }

        impl<const R: usize> Distribution for $Type<R>
        where
            Tensor<R>: $crate::distribution::$Kind,
        {
            type Parameters = Tensor<R>;
            type Samples = <Tensor<R> as $crate::distribution::$Kind>::Samples;

            fn law(&self) -> &Law {
                &self.0
            }

            fn from_law(law: Law) -> Self {
                Self(law.with_rank(R - 1 - usize::from(Self::VECTORS)))
            }

            fn element(law: &Law) -> Vec<usize> {
                law.element(Self::VECTORS)
            }
        }
    };
}
pub(super) use wraps_law;

/// Parameters of a user's shape from canonical ones `[batch, d, k]`.
pub(crate) fn parameters_of<D: Distribution>(law: &Law, canonical: Tensor<3>) -> D::Parameters {
    D::Parameters::from_canonical(canonical, &D::element(law))
}

/// Samples of a user's shape from canonical ones `[n, batch, d, k]`.
pub(crate) fn samples_of<D: Distribution>(law: &Law, canonical: Tensor<4>) -> D::Samples {
    D::Samples::from_canonical(canonical, &D::element(law))
}

/// Canonical samples `[n, batch, d, k]` from those of a user.
///
/// # Panics
///
/// If they are not samples of the law.
pub(crate) fn canonical_of<D: Distribution>(law: &Law, z: D::Samples) -> Tensor<4> {
    let ([_, d, k], element, got) = (law.dims(), D::element(law), z.sizes());
    z.into_canonical(&element, [d, k]).unwrap_or_else(|| {
        panic!("samples of shape {got:?}, but those of a batch element have the shape {element:?}")
    })
}
