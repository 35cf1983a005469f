//! Exchanging one item of a sample, such that the rest keeps its law.

use super::small::Ratios;

/// A sample of `size` items.
///
/// The law of the other items given that item `i` is in, and given that it is out, have samplers
/// that walk down the same items with the same uniform numbers; they differ in one item. A sample is
/// one of the two, and the other one is it with `i` exchanged for that *partner*.
pub(super) struct Swap<'a> {
    pub weights: &'a [f64],
    /// Whether each item is in.
    pub within: &'a [bool],
    pub size: usize,
}

impl Swap<'_> {
    /// The partner of an item, from one uniform number; the item itself if there is none.
    pub fn partner(&self, item: usize, uniform: f64) -> usize {
        let others = || (0..self.weights.len()).filter(|l| *l != item);
        // The odds that each is in, given how many of it and those before it are; none if none is.
        let columns = self.size + 1;
        let mut odds = vec![0.0; self.weights.len() * columns];
        let mut ratios = Ratios::new(self.size);
        for l in others() {
            let row = &mut odds[l * columns + 1..(l + 1) * columns];
            ratios.step(self.weights[l], |j, odds| row[j] = odds);
        }
        let taken = self.within[item];
        let mut left = self.size - usize::from(taken);
        let mut rest = uniform;
        let mut partner = item;
        for l in others().collect::<Vec<_>>().into_iter().rev() {
            let odds = &odds[l * columns..(l + 1) * columns];
            let within = self.within[l];
            let less = odds[left.saturating_sub(1)];
            if within != taken {
                // With one item more to take, `l` is in although it is not; or with one less, out.
                let probability = match taken {
                    true => (odds[left + 1] - odds[left]) / (1.0 + odds[left + 1]),
                    false => (odds[left] - less) / odds[left] / (1.0 + less),
                };
                partner = l;
                if rest < probability {
                    break;
                }
                rest = (rest - probability) / (1.0 - probability);
            }
            left = left.saturating_sub(usize::from(within));
        }
        partner
    }
}
