//! One k-hot variable in double precision, all in `O(m k)`.
//!
//! With `x = exp(logit)` and the elementary symmetric polynomials `e_j` of the items so far, the
//! *ratio* `R_j = e_{j-1} / e_j` follows a recursion without cancellation,
//!
//! ```text
//! R_j <- R_j (1 + x R_{j-1}) / (1 + x R_j),    R_0 = 0,
//! ```
//!
//! and `w_ij = x_i R_j / (1 + x_i R_j)` is the probability that item `i` is in, given that `j` of the
//! items `1..=i` are. A walk from the last item to the first, with `j` the items that are still to
//! be taken, draws a sample, sums the marginals, and carries their derivative.

use super::swap::Swap;
use crate::distribution::count::softplus;

/// The ratio `R_j` where there are fewer than `j` items: times any weight it is far above 1, and
/// finite.
const ABSENT: f64 = 1e150;

/// Logits are cut here, relative to that of the last item of the likeliest subset. An item beyond is
/// in, or out, but for a probability of `exp(-300)`.
const LIMIT: f64 = 300.0;

/// A variable and its complement have the same covariance; this is the one with fewer items in.
#[derive(Clone, Debug)]
pub(super) struct Small {
    /// Whether an item that is in here is out of the variable itself.
    complement: bool,
    /// The number of items that are in.
    size: usize,
    /// The logits, shifted by a constant: zero is the `size`-th largest one.
    logits: Vec<f64>,
    /// What was subtracted.
    shift: f64,
}

impl Small {
    pub fn new(logits: &[f64], size: usize) -> Self {
        let m = logits.len();
        let complement = 2 * size > m;
        let (size, sign) = match complement {
            true => (m - size, -1.0),
            false => (size, 1.0),
        };
        let mut logits: Vec<f64> = logits.iter().map(|logit| sign * logit).collect();
        let mut shift = 0.0;
        if size > 0 {
            let mut sorted = logits.clone();
            let (_, last, _) = sorted.select_nth_unstable_by(size - 1, |a, b| b.total_cmp(a));
            shift = *last;
            logits.iter_mut().for_each(|logit| *logit -= shift);
        }
        Self {
            complement,
            size,
            logits,
            shift,
        }
    }

    /// A number of the variable itself, from one of the complement or the other way round.
    fn turned(&self, x: f64) -> f64 {
        match self.complement {
            true => 1.0 - x,
            false => x,
        }
    }

    /// The weights `exp(logit)`, cut at both ends.
    fn weights(&self) -> impl Iterator<Item = f64> {
        let cut = |logit: &f64| logit.clamp(-LIMIT, LIMIT).exp();
        self.logits.iter().map(cut)
    }

    /// `ln e_size` of the shifted logits.
    pub fn log_partition(&self) -> f64 {
        if self.logits.iter().all(|logit| logit.abs() <= LIMIT) {
            let mut ratios = Ratios::new(self.size);
            self.weights().for_each(|x| ratios.step(x, |_, _| ()));
            return -ratios.now[1..].iter().map(|ratio| ratio.ln()).sum::<f64>();
        }
        // The same recursion of logarithms.
        let mut log_ratios = vec![f64::INFINITY; self.size + 1];
        log_ratios[0] = f64::NEG_INFINITY;
        for logit in &self.logits {
            for j in (1..=self.size).rev() {
                if log_ratios[j] == f64::INFINITY && log_ratios[j - 1] == f64::INFINITY {
                    continue;
                }
                let out = softplus(logit + log_ratios[j - 1]);
                log_ratios[j] = out - softplus(-(logit + log_ratios[j])) - logit;
            }
        }
        -log_ratios[1..].iter().sum::<f64>()
    }

    /// The logarithm of the partition function of the logits as they were given.
    pub fn full_log_partition(&self) -> f64 {
        let shifted = self.log_partition() + self.size as f64 * self.shift;
        match self.complement {
            // e_k(x) is the product of all x times e_{m-k}(1 / x).
            true => {
                let sum: f64 = self.logits.iter().sum();
                shifted - sum - self.logits.len() as f64 * self.shift
            }
            false => shifted,
        }
    }

    /// `logits . z - ln e_k`, also of a relaxed sample, whose entries have another sum.
    pub fn log_prob(&self, z: &[f64], log_partition: f64) -> f64 {
        let within: f64 = z.iter().map(|z| self.turned(*z)).sum();
        self.along(z) - log_partition + self.shift * (within - self.size as f64)
    }

    /// `sum_i logit_i z_i` of a sample or of means, both of the variable itself.
    pub fn along(&self, z: &[f64]) -> f64 {
        let terms = self.logits.iter().zip(z);
        terms
            .map(|(logit, z)| match self.turned(*z) {
                0.0 => 0.0,
                z => logit * z,
            })
            .sum()
    }

    /// The item that is exchanged with `item` in a sample; see [`Swap`].
    pub fn partner(&self, z: &[f64], item: usize, uniform: f64) -> usize {
        let weights: Vec<f64> = self.weights().collect();
        let within: Vec<bool> = z.iter().map(|z| self.turned(*z) > 0.5).collect();
        let swap = Swap {
            weights: &weights,
            within: &within,
            size: self.size,
        };
        swap.partner(item, uniform)
    }
}

/// The ratios `R_0, .., R_size` of the items so far.
pub(super) struct Ratios {
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Ratios {
    pub fn new(size: usize) -> Self {
        let mut now = vec![ABSENT; size + 1];
        now[0] = 0.0;
        Self {
            next: now.clone(),
            now,
        }
    }

    /// Adds an item; `see` is told of `j - 1` and the odds `x R_j` that it is in, before it is added.
    #[inline]
    pub fn step(&mut self, x: f64, mut see: impl FnMut(usize, f64)) {
        let before = &self.now[..self.now.len() - 1];
        let (own, next) = (&self.now[1..], &mut self.next[1..]);
        for (j, ((next, own), before)) in next.iter_mut().zip(own).zip(before).enumerate() {
            let odds = x * own;
            see(j, odds);
            *next = own * ((1.0 + x * before) / (1.0 + odds));
        }
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

/// The probabilities `w_ij` of one variable after another; the memory is used again.
#[derive(Debug, Default)]
pub(super) struct Table {
    size: usize,
    complement: bool,
    /// `w_ij` at `i * size + j - 1`.
    taken: Vec<f64>,
    /// The derivative of each along a direction.
    slope: Vec<f64>,
}

impl Table {
    pub fn fill(&mut self, small: &Small) {
        (self.size, self.complement) = (small.size, small.complement);
        if self.size == 0 {
            return;
        }
        self.taken.resize(small.logits.len() * self.size, 0.0);
        let mut ratios = Ratios::new(self.size);
        for (x, row) in small.weights().zip(self.taken.chunks_exact_mut(self.size)) {
            let before = &ratios.now[..self.size];
            let (own, next) = (&ratios.now[1..], &mut ratios.next[1..]);
            // As `Ratios::step`, with the probability for free: one division for each entry.
            let cells = row.iter_mut().zip(next).zip(own).zip(before);
            for (((taken, next), own), before) in cells {
                let odds = x * own;
                let out = 1.0 / (1.0 + odds);
                *taken = odds * out;
                *next = own * ((1.0 + x * before) * out);
            }
            std::mem::swap(&mut ratios.now, &mut ratios.next);
        }
    }

    /// A sample of uniform numbers, one for each item.
    pub fn draw(&self, uniform: &[f64], z: &mut [f64]) {
        let (one, zero) = match self.complement {
            true => (0.0, 1.0),
            false => (1.0, 0.0),
        };
        let mut left = self.size;
        for (i, (z, u)) in z.iter_mut().zip(uniform).enumerate().rev() {
            let within = left > 0 && *u < self.taken[i * self.size + left - 1];
            left -= usize::from(within);
            *z = if within { one } else { zero };
        }
    }

    /// The probability that each item is in.
    pub fn mean(&self, mean: &mut [f64]) {
        let (mut reach, mut flow) = self.walk();
        for (i, mean) in mean.iter_mut().enumerate().rev() {
            let taken = &self.taken[i * self.size..][..self.size];
            for ((flow, reach), taken) in flow.iter_mut().zip(&reach).zip(taken) {
                *flow = reach * taken;
            }
            let within = sum(&flow[..self.size]);
            *mean = match self.complement {
                true => 1.0 - within,
                false => within,
            };
            move_on(&mut reach, &flow);
        }
    }

    /// The covariance matrix times a vector: the derivative of the means along it.
    pub fn covariance(&mut self, along: &[f64], product: &mut [f64]) {
        if self.size == 0 {
            return product.fill(0.0);
        }
        self.slope.resize(self.taken.len(), 0.0);
        // The derivative of ln e_j of the items so far.
        let mut now = vec![0.0; self.size + 1];
        let mut next = now.clone();
        let rows = self.taken.chunks_exact(self.size);
        for ((taken, slope), v) in rows.zip(self.slope.chunks_exact_mut(self.size)).zip(along) {
            let before = &now[..self.size];
            let cells = slope.iter_mut().zip(&mut next[1..]).zip(taken);
            for (((slope, next), w), (own, before)) in cells.zip(now[1..].iter().zip(before)) {
                let rise = v + before - own;
                *next = own + w * rise;
                *slope = w * (1.0 - w) * rise;
            }
            std::mem::swap(&mut now, &mut next);
        }
        let (mut reach, mut flow) = self.walk();
        let (mut reach_slope, mut flow_slope) = (vec![0.0; self.size], vec![0.0; self.size + 1]);
        for (i, product) in product.iter_mut().enumerate().rev() {
            let at = i * self.size..(i + 1) * self.size;
            let cells = self.taken[at.clone()].iter().zip(&self.slope[at]);
            let flows = flow.iter_mut().zip(&mut flow_slope);
            let reaches = reach.iter().zip(&reach_slope);
            for (((flow, flow_slope), (reach, reach_slope)), (w, slope)) in
                flows.zip(reaches).zip(cells)
            {
                *flow = reach * w;
                *flow_slope = reach_slope * w + reach * slope;
            }
            *product = sum(&flow_slope[..self.size]);
            move_on(&mut reach, &flow);
            move_on(&mut reach_slope, &flow_slope);
        }
    }

    /// The probability that `j` items are still to be taken, for `j` from 1 up, before the first
    /// step of a walk; and what moves from `j` to `j - 1` in a step, with a zero at the end.
    fn walk(&self) -> (Vec<f64>, Vec<f64>) {
        let mut reach = vec![0.0; self.size];
        if let Some(last) = reach.last_mut() {
            *last = 1.0;
        }
        (reach, vec![0.0; self.size + 1])
    }
}

/// One step of a walk: `flow[j]` leaves state `j` for the one below.
fn move_on(reach: &mut [f64], flow: &[f64]) {
    for ((reach, leaves), comes) in reach.iter_mut().zip(flow).zip(&flow[1..]) {
        *reach += comes - leaves;
    }
}

/// A sum in four parts, which is four times as fast.
fn sum(x: &[f64]) -> f64 {
    let mut parts = [0.0; 4];
    let chunks = x.chunks_exact(4);
    let rest: f64 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (part, x) in parts.iter_mut().zip(chunk) {
            *part += x;
        }
    }
    parts[0] + parts[1] + (parts[2] + parts[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f64; 4] = [0.3, -1.2, 0.8, 0.1];

    fn table(logits: &[f64], size: usize) -> Table {
        let mut table = Table::default();
        table.fill(&Small::new(logits, size));
        table
    }

    #[test]
    fn a_draw_by_hand() {
        let mut z = [0.0; 4];
        table(&LOGITS, 2).draw(&[0.2, 0.7, 0.4, 0.6], &mut z);
        assert_eq!(z, [1.0, 0.0, 1.0, 0.0]);
    }

    /// Every subset is drawn with its probability: the product of the probabilities on its path.
    #[test]
    fn paths_have_the_probability_of_their_subset() {
        for size in 0..=4 {
            let (small, table) = (Small::new(&LOGITS, size), table(&LOGITS, size));
            let partition = small.log_partition();
            for bits in (0..16u32).filter(|bits| bits.count_ones() as usize == size) {
                let z: Vec<f64> = (0..4).map(|i| f64::from(bits >> i & 1)).collect();
                let mut left = small.size;
                let mut path = 1.0;
                for i in (0..4).rev() {
                    let within = small.turned(z[i]) == 1.0;
                    let taken = match left {
                        0 => 0.0,
                        _ => table.taken[i * small.size + left - 1],
                    };
                    path *= if within { taken } else { 1.0 - taken };
                    left -= usize::from(within);
                }
                let want = small.log_prob(&z, partition).exp();
                assert!((path - want).abs() < 1e-14, "{z:?}: {path} {want}");
            }
        }
    }

    /// The two recursions of the partition function, of ratios and of their logarithms.
    #[test]
    fn large_logits_take_the_other_recursion() {
        let near = [290.0, -3.0, 4.0, 0.0, 7.0];
        let far = near.map(|logit| if logit > 200.0 { logit + 5e3 } else { logit });
        for size in 1..5 {
            let [near, far] = [near, far].map(|x| Small::new(&x, size).full_log_partition());
            assert!((far - near - 5e3).abs() < 1e-11, "{size}: {near} {far}");
        }
    }

    /// The exchange turns the law given that an item is in into the law given that it is out.
    #[test]
    fn exchanged_samples_have_the_other_conditional_law() {
        let points = 4_000;
        for size in 1..4 {
            let small = Small::new(&LOGITS, size);
            let partition = small.log_partition();
            let subsets = || (0..16u32).filter(|bits| bits.count_ones() as usize == size);
            let vector =
                |bits: u32| -> Vec<f64> { (0..4).map(|i| f64::from(bits >> i & 1)).collect() };
            let p = |bits: u32| small.log_prob(&vector(bits), partition).exp();
            for (item, taken) in (0..4).flat_map(|item| [(item, 0), (item, 1)]) {
                let given = |state: u32| subsets().filter(move |bits| bits >> item & 1 == state);
                let from: f64 = given(taken).map(p).sum();
                let to: f64 = given(1 - taken).map(p).sum();
                let mut reached = [0.0; 16];
                for bits in given(taken) {
                    for point in 0..points {
                        let uniform = (f64::from(point) + 0.5) / f64::from(points);
                        let partner = small.partner(&vector(bits), item, uniform);
                        let other = bits ^ (1 << item) ^ (1 << partner);
                        reached[other as usize] += p(bits) / from / f64::from(points);
                    }
                }
                for bits in given(1 - taken) {
                    let (got, want) = (reached[bits as usize], p(bits) / to);
                    // The grid is off by at most a point for each partner.
                    assert!(
                        (got - want).abs() < 1e-3,
                        "{size} {item} {bits:b}: {got} {want}"
                    );
                }
            }
        }
    }
}
