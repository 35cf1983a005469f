//! Debiased straight-through for one draw, in scalar double precision and by other means than the
//! library's: moves are listed one by one, and inclusion probabilities come from a sorted list.

use straightflow::distribution::Family;

use crate::scalar::sigmoid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    StraightThrough,
    SecondOrder,
    None,
}

/// What the probability of a move is proportional to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Weight,
    Nothing,
    Learned,
}

/// One batch element and everything that its estimate depends on but the noise.
pub struct Case {
    pub family: Family,
    pub k: usize,
    pub natural: Vec<f64>,
    pub cost: fn(&[f64]) -> f64,
    pub slopes: fn(&[f64]) -> Vec<f64>,
    pub base: Base,
    pub by: By,
    pub flips: usize,
    /// Of coordinate `j`, cell `c` and category `l`, at `(j * cells + c) * k + l`.
    pub curvature: Vec<f64>,
    pub rms: Vec<f64>,
}

struct Move {
    /// Its weight in the exact gradient, and what it is chosen by.
    weight: f64,
    chosen_by: f64,
    moved: Vec<f64>,
    step: f64,
    direction: Vec<f64>,
    /// What the base has of this move, as a vector; the sum over moves is the base.
    base: Vec<f64>,
    curvature: f64,
    rms: f64,
}

fn unit(size: usize, at: usize) -> Vec<f64> {
    (0..size).map(|i| f64::from(u8::from(i == at))).collect()
}

fn add(to: &mut [f64], factor: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += factor * x);
}

impl Case {
    fn cells(&self) -> usize {
        self.k.max(2)
    }

    fn mean(&self, i: usize) -> f64 {
        let x = self.natural[i];
        match self.family {
            Family::Bernoulli => sigmoid(x),
            Family::Binomial { trials } => f64::from(trials) * sigmoid(x),
            Family::Poisson | Family::NegativeBinomial { .. } | Family::Geometric => x.exp(),
            Family::Categorical => {
                let row = &self.natural[i / self.k * self.k..][..self.k];
                x.exp() / row.iter().map(|x| x.exp()).sum::<f64>()
            }
            Family::Subset { .. } | Family::Rounded { .. } => {
                unreachable!("tested in a file of its own")
            }
        }
    }

    /// The moves of a draw; `down` says of each coordinate whether a binomial step goes down.
    fn moves(&self, z: &[f64], down: &[bool]) -> Vec<Move> {
        let slopes = (self.slopes)(z);
        let size = z.len();
        let one = |i: usize| match self.family {
            Family::Categorical => self.category(z, &slopes, i),
            _ => self.step(z, &slopes, i, down[i]),
        };
        (0..size).map(one).collect()
    }

    fn step(&self, z: &[f64], slopes: &[f64], i: usize, down: bool) -> Move {
        let (m, x) = (self.mean(i), z[i]);
        // The weight, and twice the factor of the second-order rule.
        let (weight, second) = match self.family {
            Family::Bernoulli => (m * (1.0 - m), x * (1.0 - m) + (1.0 - x) * m),
            Family::Binomial { trials } => {
                let (n, p) = (f64::from(trials), m / f64::from(trials));
                (n * p * (1.0 - p), p * (n - x) + (1.0 - p) * x)
            }
            Family::Poisson => (m, x + m),
            Family::NegativeBinomial { dispersion: r } => {
                let p = m / (r + m);
                (p * (r + x), p * (r + x) + x)
            }
            Family::Geometric => {
                let up = m * (1.0 + x) / (1.0 + m);
                (up, up + x)
            }
            Family::Categorical | Family::Subset { .. } | Family::Rounded { .. } => {
                unreachable!("it has no unit steps")
            }
        };
        let step = match self.family {
            Family::Bernoulli if x == 1.0 => -1.0,
            Family::Binomial { .. } if down => -1.0,
            _ => 1.0,
        };
        let sign = match self.family {
            Family::Binomial { trials } => 1.0 - 2.0 * x / f64::from(trials),
            _ => 1.0,
        };
        let cell = i * self.cells() + usize::from(x > m);
        let mut moved = z.to_vec();
        moved[i] += step;
        let mut base = unit(z.len(), i);
        let (chosen_by, factor) = match self.base {
            Base::StraightThrough => (weight, weight * slopes[i]),
            Base::SecondOrder => (second, 0.5 * second * slopes[i]),
            Base::None => (weight, 0.0),
        };
        base[i] = factor;
        Move {
            weight,
            chosen_by,
            moved,
            step,
            direction: unit(z.len(), i),
            base,
            curvature: self.curvature[cell] * sign,
            rms: self.rms[cell],
        }
    }

    fn category(&self, z: &[f64], slopes: &[f64], i: usize) -> Move {
        let k = self.k;
        let (start, j) = (i / k * k, i % k);
        let now = z[start..start + k]
            .iter()
            .position(|x| *x == 1.0)
            .expect("one-hot");
        let p = self.mean(i);
        let exists = f64::from(u8::from(j != now));
        let mut moved = z.to_vec();
        (0..k).for_each(|l| moved[start + l] = f64::from(u8::from(l == j)));
        // (e_j - p) / (1 - p_j)
        let mut direction = vec![0.0; z.len()];
        for l in 0..k {
            let one = f64::from(u8::from(l == j));
            direction[start + l] = (one - self.mean(start + l)) / (1.0 - p);
        }
        let slope = slopes[i] - slopes[start + now];
        let weight = exists * p * (1.0 - p);
        let mut base = vec![0.0; z.len()];
        let chosen_by = match self.base {
            Base::StraightThrough => {
                add(&mut base, weight * slope, &direction);
                weight
            }
            Base::SecondOrder => {
                base[i] += 0.5 * exists * p * slope;
                base[start + now] -= 0.5 * exists * p * slope;
                exists * p
            }
            Base::None => weight,
        };
        let cell = ((i / k) * self.cells() + now) * k + j;
        Move {
            weight,
            chosen_by,
            moved,
            step: 1.0,
            direction,
            base,
            curvature: self.curvature[cell],
            rms: self.rms[cell],
        }
    }

    fn probabilities(&self, moves: &[Move]) -> Vec<f64> {
        let sum = |x: &dyn Fn(&Move) -> f64| -> f64 { moves.iter().map(x).sum() };
        let weights = sum(&|m| m.chosen_by);
        let learned = sum(&|m| m.chosen_by * m.rms);
        let positive = sum(&|m| f64::from(u8::from(m.chosen_by > 0.0)));
        let q = moves.iter().map(|m| match self.by {
            By::Weight => m.chosen_by / weights,
            By::Nothing => f64::from(u8::from(m.chosen_by > 0.0)) / positive,
            By::Learned => 0.9 * m.chosen_by * m.rms / learned + 0.1 * m.chosen_by / weights,
        });
        let q: Vec<f64> = q.collect();
        // From the largest down: certain, as long as the rest could not be scaled up to it.
        let mut order: Vec<usize> = (0..q.len()).filter(|i| q[*i] > 0.0).collect();
        order.sort_by(|a, b| q[*b].total_cmp(&q[*a]));
        let mut result = vec![0.0; q.len()];
        let mut rest: f64 = q.iter().sum();
        let mut left = self.flips.min(order.len()) as f64;
        for i in order {
            let share = (q[i] * left / rest).min(1.0);
            result[i] = share;
            if share == 1.0 {
                rest -= q[i];
                left -= 1.0;
            }
        }
        result
    }

    /// The inclusion probabilities of a draw's moves.
    pub fn chances(&self, z: &[f64], down: &[bool]) -> Vec<f64> {
        self.probabilities(&self.moves(z, down))
    }

    /// The uniform numbers between two of which the choice is the same, and their weights.
    pub fn choices(&self, z: &[f64], down: &[bool]) -> Vec<(f64, f64)> {
        let mut ends = vec![0.0, 1.0];
        let mut sum = 0.0;
        for p in self.chances(z, down) {
            sum += p;
            ends.push(sum - sum.floor());
        }
        middles(ends)
    }

    /// The estimate for a uniform number.
    pub fn estimate(&self, z: &[f64], down: &[bool], u: f64) -> Vec<f64> {
        let moves = self.moves(z, down);
        let chances = self.probabilities(&moves);
        let mut g = vec![0.0; z.len()];
        let mut sum = 0.0;
        for (m, chance) in moves.iter().zip(chances) {
            let (start, end) = (sum, sum + chance);
            sum = end;
            let points = (0..self.flips).map(|i| u + i as f64);
            let chosen = points.filter(|point| start <= *point && *point < end);
            add(&mut g, 1.0, &m.base);
            add(&mut g, m.weight * m.curvature, &m.direction);
            for _ in chosen {
                let slope = m.step * ((self.cost)(&m.moved) - (self.cost)(z));
                add(
                    &mut g,
                    m.weight * (slope - m.curvature) / chance,
                    &m.direction,
                );
                add(&mut g, -1.0 / chance, &m.base);
            }
        }
        g
    }

    /// The sum over all moves: what the choice is an estimate of.
    pub fn difference(&self, z: &[f64], down: &[bool]) -> Vec<f64> {
        let mut g = vec![0.0; z.len()];
        for m in self.moves(z, down) {
            let slope = m.step * ((self.cost)(&m.moved) - (self.cost)(z));
            add(&mut g, m.weight * slope, &m.direction);
        }
        g
    }

    /// What the choice of one move adds to the variance at a draw: `sum_j |r_j|^2 / pi_j - |sum_j
    /// r_j|^2`, with `r_j` what the correction of move `j` is. Where moves have no entry in common
    /// it is `sum_j (1 / pi_j - 1) |r_j|^2`.
    pub fn excess(&self, z: &[f64], down: &[bool]) -> f64 {
        let moves = self.moves(z, down);
        let chances = self.probabilities(&moves);
        let mut sum = vec![0.0; z.len()];
        let mut excess = 0.0;
        for (m, chance) in moves.iter().zip(chances) {
            let slope = m.step * ((self.cost)(&m.moved) - (self.cost)(z));
            let mut r: Vec<f64> = m.base.iter().map(|b| -b).collect();
            add(&mut r, m.weight * (slope - m.curvature), &m.direction);
            add(&mut sum, 1.0, &r);
            if chance > 0.0 {
                excess += r.iter().map(|r| r * r).sum::<f64>() / chance;
            }
        }
        excess - sum.iter().map(|r| r * r).sum::<f64>()
    }
}

/// The middles of the intervals between points, with their lengths.
pub fn middles(mut ends: Vec<f64>) -> Vec<(f64, f64)> {
    ends.sort_by(f64::total_cmp);
    let pairs = ends.windows(2).map(|w| (0.5 * (w[0] + w[1]), w[1] - w[0]));
    pairs.filter(|(_, length)| *length > 1e-13).collect()
}
