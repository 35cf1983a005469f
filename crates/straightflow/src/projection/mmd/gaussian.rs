//! Sums of a law's probabilities against a Gaussian kernel.

use super::cross::{LOG_TAIL, safe_stride};
use super::panels::{law_length, sum_nodes, window};
use crate::distribution::CountLaw;
use crate::kernel::REACH;

/// A table longer than this would cost more than it saves: the kernel is then so narrow that only
/// a small part of the law matters to a sample, and that part is computed for each sample.
const LONGEST_TABLE: u64 = 192;

/// The same for panels, in bandwidths: a panel is at most four bandwidths long.
const LONGEST_PANELS: f64 = 512.0;

/// The sum over one law and one bandwidth.
#[derive(Debug)]
pub(super) struct GaussianSum {
    bandwidth: f64,
    nodes: Nodes,
}

#[derive(Debug)]
enum Nodes {
    /// Equally spaced points with their probabilities times the stride.
    Grid {
        first: f64,
        stride: f64,
        masses: Vec<f64>,
    },
    /// The nodes of Gauss rules with probabilities times weights.
    Scattered(Vec<(f64, f64)>),
    /// Nodes chosen around each sample.
    Local {
        law: CountLaw,
        lo: u64,
        hi: u64,
        stride: u64,
    },
}

/// A Gaussian at the distance `d` of a node from a sample.
#[derive(Clone, Copy)]
struct Term {
    distance: f64,
    /// Probability times `K(d)`.
    height: f64,
}

impl GaussianSum {
    pub(super) fn new(law: &CountLaw, bandwidth: f64) -> Self {
        let (lo, hi) = window(law, LOG_TAIL);
        let stride = safe_stride(law, bandwidth);
        let count = (hi - lo) / stride + 1;
        // The integers that matter to one sample.
        let near = 2.0 * REACH * bandwidth;
        let nodes = if count <= LONGEST_TABLE {
            let point = |j: u64| (lo + j * stride) as f64;
            let mass = |j: u64| stride as f64 * law.pmf(point(j));
            Nodes::Grid {
                first: lo as f64,
                stride: stride as f64,
                masses: (0..count).map(mass).collect(),
            }
        } else if near / stride as f64 > LONGEST_TABLE as f64
            && (hi - lo) as f64 <= LONGEST_PANELS * bandwidth
        {
            let mut points = Vec::new();
            let longest = |start: f64| law_length(law, start).min(4.0 * bandwidth);
            sum_nodes(lo, hi, longest, |x, node| {
                points.push((x, node * law.pmf(x)));
            });
            Nodes::Scattered(points)
        } else {
            Nodes::Local {
                law: *law,
                lo,
                hi,
                stride,
            }
        };
        Self { bandwidth, nodes }
    }

    /// `sum_x w(x) K(x - y)`.
    pub(super) fn mean(&self, y: f64) -> f64 {
        self.sum(y, |term| term.height)
    }

    /// `sum_x w(x) [K(d + 1) - K(d)]`, `d = x - y`, with
    /// `K(d + 1) - K(d) = K(d) expm1(-(2 d + 1) / (2 h^2))`.
    pub(super) fn r(&self, y: f64) -> f64 {
        let inverse = 0.5 / (self.bandwidth * self.bandwidth);
        self.sum(y, |term| {
            term.height * (-(2.0 * term.distance + 1.0) * inverse).exp_m1()
        })
    }

    /// `sum_x w(x) [K'(d) - K'(d + 1)]`, with `K'(d) = -d K(d) / h^2`.
    pub(super) fn c(&self, y: f64) -> f64 {
        let inverse = 0.5 / (self.bandwidth * self.bandwidth);
        let sum = self.sum(y, |term| {
            let d = term.distance;
            let rise = (-(2.0 * d + 1.0) * inverse).exp_m1();
            term.height * (1.0 + (d + 1.0) * rise)
        });
        sum * 2.0 * inverse
    }

    /// `r(y) - r(y - s)`: with `A = expm1(-(2 d + 1) / (2 h^2))`, `E = expm1(-(2 d s + s^2) / (2
    /// h^2))` and `B = expm1(-s / h^2)` the term at `d` is `-K(d) [A E + (1 + A) (1 + E) B]`.
    pub(super) fn fall(&self, y: f64, shift: f64) -> f64 {
        let inverse = 0.5 / (self.bandwidth * self.bandwidth);
        if shift.abs() * 2.0 > self.bandwidth {
            // Nothing cancels, and E may overflow where K has underflowed.
            return self.r(y) - self.r(y - shift);
        }
        let b = (-2.0 * shift * inverse).exp_m1();
        self.sum(y, |term| {
            let d = term.distance;
            let a = (-(2.0 * d + 1.0) * inverse).exp_m1();
            let e = (-(2.0 * d + shift) * shift * inverse).exp_m1();
            -term.height * (a * e + (1.0 + a) * (1.0 + e) * b)
        })
    }

    /// Sums a part over all nodes near `y`; a part may look one unit and half a bandwidth away.
    fn sum(&self, y: f64, part: impl Fn(Term) -> f64) -> f64 {
        let reach = (REACH + 0.5) * self.bandwidth + 1.0;
        match &self.nodes {
            Nodes::Grid {
                first,
                stride,
                masses,
            } => self.grid_sum(y, *first, *stride, masses, reach, part),
            Nodes::Scattered(points) => {
                let from = points.partition_point(|&(x, _)| x < y - reach);
                let near = points[from..].iter().take_while(|&&(x, _)| x <= y + reach);
                near.map(|&(x, mass)| {
                    let distance = x - y;
                    let height = mass * self.kernel(distance);
                    part(Term { distance, height })
                })
                .sum()
            }
            Nodes::Local {
                law,
                lo,
                hi,
                stride,
            } => {
                let lo = (*lo).max((y - reach).floor().max(0.0) as u64);
                let hi = (*hi).min((y + reach).ceil().max(0.0) as u64);
                let mut total = 0.0;
                let mut add = |x: f64, node: f64| {
                    let distance = x - y;
                    let height = node * law.pmf(x) * self.kernel(distance);
                    total += part(Term { distance, height });
                };
                if lo > hi {
                    return 0.0;
                }
                if (hi - lo) / stride < LONGEST_TABLE {
                    for j in 0..=(hi - lo) / stride {
                        add((lo + j * stride) as f64, *stride as f64);
                    }
                } else {
                    let longest = |start: f64| law_length(law, start).min(4.0 * self.bandwidth);
                    sum_nodes(lo, hi, longest, add);
                }
                total
            }
        }
    }

    fn kernel(&self, distance: f64) -> f64 {
        let t = distance / self.bandwidth;
        (-0.5 * t * t).exp()
    }

    /// On a grid the Gaussian follows from its neighbour: `K(d + k) = K(d) q`, and from one step to
    /// the next `q` changes by the factor `exp(-k^2 / h^2)`. Starting at the node nearest to `y`
    /// and going outwards, all factors are at most one and errors stay near rounding.
    fn grid_sum(
        &self,
        y: f64,
        first: f64,
        stride: f64,
        masses: &[f64],
        reach: f64,
        part: impl Fn(Term) -> f64,
    ) -> f64 {
        let last = masses.len() as f64 - 1.0;
        let nearest = ((y - first) / stride).round().clamp(0.0, last);
        let start = nearest as usize;
        let origin = first + nearest * stride - y;
        if origin.abs() > reach {
            return 0.0;
        }
        let comb = Comb {
            origin,
            top: self.kernel(origin),
            half_precision: 0.5 / (self.bandwidth * self.bandwidth),
            reach,
        };
        let centre = Term {
            distance: origin,
            height: masses[start] * comb.top,
        };
        let right = comb.walk(stride, masses[start + 1..].iter(), &part);
        let left = comb.walk(-stride, masses[..start].iter().rev(), &part);
        part(centre) + right + left
    }
}

/// Equally spaced values of a Gaussian, on one side of its largest.
struct Comb {
    origin: f64,
    top: f64,
    half_precision: f64,
    reach: f64,
}

impl Comb {
    fn walk<'m>(
        &self,
        step: f64,
        masses: impl Iterator<Item = &'m f64>,
        part: impl Fn(Term) -> f64,
    ) -> f64 {
        let mut ratio = (-(2.0 * self.origin + step) * step * self.half_precision).exp();
        let shrink = (-2.0 * step * step * self.half_precision).exp();
        let (mut distance, mut kernel) = (self.origin, self.top);
        let mut total = 0.0;
        for mass in masses {
            distance += step;
            if distance.abs() > self.reach {
                break;
            }
            kernel *= ratio;
            ratio *= shrink;
            total += part(Term {
                distance,
                height: mass * kernel,
            });
        }
        total
    }
}
