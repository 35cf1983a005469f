//! From numbers to pixels, with ticks at round numbers.

/// How numbers become lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Axis {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are equal lengths. Zero, if it occurs, has a place of its own at the lower end.
    Log,
}

/// A number that the axis names.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

/// The share of a logarithmic axis that zero gets.
const ZERO: f64 = 0.09;

/// An axis with its range, on which 0 is the lower end and 1 the upper one.
#[derive(Debug, Clone)]
pub struct Scale {
    kind: Axis,
    low: f64,
    high: f64,
    zero: bool,
}

impl Scale {
    /// An axis for the values. Those that are not finite, and negative ones on a logarithmic axis,
    /// have no place. The range begins and ends at ticks, unless it is `tight`.
    pub fn fit(kind: Axis, values: impl IntoIterator<Item = f64>, tight: bool) -> Self {
        let mut zero = false;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            if kind == Axis::Log && value <= 0.0 {
                zero |= value == 0.0;
                continue;
            }
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = if kind == Axis::Log {
                (0.1, 1.0)
            } else {
                (0.0, 1.0)
            };
        }
        match kind {
            Axis::Linear => {
                if high - low <= 1e-12 * high.abs().max(low.abs()) {
                    let room = if high == 0.0 { 1.0 } else { 0.1 * high.abs() };
                    (low, high) = (low - room, high + room);
                }
                if !tight {
                    let step = nice_step(high - low);
                    low = (low / step + 1e-9).floor() * step;
                    high = (high / step - 1e-9).ceil() * step;
                }
            }
            Axis::Log => {
                let room = if high / low < 1.5 { 1.5 } else { 1.0 };
                let room = if tight {
                    room
                } else {
                    room * (high / low).powf(0.04)
                };
                (low, high) = (low / room, high * room);
            }
        }
        Self {
            kind,
            low,
            high,
            zero,
        }
    }

    /// The place of a value between 0 and 1, if it has one; places outside of the range are outside
    /// of [0, 1].
    pub fn at(&self, value: f64) -> Option<f64> {
        let start = if self.zero { ZERO } else { 0.0 };
        let place = match self.kind {
            Axis::Linear => (value - self.low) / (self.high - self.low),
            Axis::Log if value == 0.0 && self.zero => 0.25 * ZERO,
            Axis::Log => {
                let share = (value / self.low).ln() / (self.high / self.low).ln();
                start + (1.0 - start) * share
            }
        };
        // Logarithms of what is not above zero are not finite.
        place.is_finite().then_some(place)
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    pub fn ticks(&self) -> Vec<Tick> {
        match self.kind {
            Axis::Linear => linear_ticks(self.low, self.high),
            Axis::Log => {
                let mut ticks = log_ticks(self.low, self.high);
                if self.zero {
                    let label = "0".to_owned();
                    ticks.insert(0, Tick { value: 0.0, label });
                }
                ticks
            }
        }
    }
}

/// One, two or five times a power of ten, such that the range has about five steps.
fn nice_step(range: f64) -> f64 {
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= rough * 0.8);
    factor.unwrap_or(10.0) * power
}

fn linear_ticks(low: f64, high: f64) -> Vec<Tick> {
    let step = nice_step(high - low);
    let (first, last) = ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    (0..=(last - first) as usize)
        .map(|index| {
            let value = (first + index as f64) * step;
            let label = if decimals > 5 || step >= 1e6 {
                power_label(value)
            } else {
                sign(&format!("{value:.decimals$}"))
            };
            Tick { value, label }
        })
        .collect()
}

fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let decades = (low.log10() - 1e-9).floor() as i32..=(high.log10() + 1e-9).floor() as i32;
    let inside = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let spread = (high / low).log10();
    let factors: &[f64] = match spread {
        wide if wide > 4.0 => &[1.0],
        wide if wide > 2.5 => &[1.0, 3.0],
        _ => &[1.0, 2.0, 5.0],
    };
    let every = (spread / 6.0).ceil().max(1.0) as i32;
    let mut values: Vec<f64> = decades
        .filter(|decade| decade.rem_euclid(every) == 0)
        .flat_map(|decade| {
            factors
                .iter()
                .map(move |factor| factor * 10f64.powi(decade))
        })
        .filter(inside)
        .collect();
    if values.len() < 2 {
        values = linear_ticks(low, high)
            .iter()
            .map(|tick| tick.value)
            .collect();
    }
    let label = |value: f64| {
        if (9.99e-4..9.99e4).contains(&value) {
            let decimals = (-value.log10() - 1e-9).ceil().max(0.0) as usize;
            let text = format!("{value:.*}", decimals + 2);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            power_label(value)
        }
    };
    let tick = |value| Tick {
        value,
        label: label(value),
    };
    values.into_iter().map(tick).collect()
}

/// `2×10⁻⁶`
fn power_label(value: f64) -> String {
    let text = format!("{value:.1e}");
    let Some((digits, power)) = text.split_once('e') else {
        return text;
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "0" || digits == "-0" {
        return "0".to_owned();
    }
    let power: String = power
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
            None => '⁻',
        })
        .collect();
    if digits == "1" {
        format!("10{power}")
    } else {
        sign(&format!("{digits}×10{power}"))
    }
}

/// A number in four significant digits, as it is shown when the pointer rests on its place.
pub fn short(value: f64) -> String {
    let power = value.abs().log10().floor();
    if value != 0.0 && !(-4.0..6.0).contains(&power) {
        return power_label(value);
    }
    let decimals = if value == 0.0 {
        0.0
    } else {
        (3.0 - power).max(0.0)
    };
    let text = format!("{value:.*}", decimals as usize);
    match text.contains('.') {
        true => sign(text.trim_end_matches('0').trim_end_matches('.')),
        false => sign(&text),
    }
}

/// A minus as wide as a digit instead of a hyphen; no minus before zero.
pub fn sign(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().any(|c| ('1'..='9').contains(&c)) => format!("−{rest}"),
        Some(rest) => rest.to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = |low, high| Scale::fit(Axis::Linear, [low, high], false);
        assert_eq!(
            labels(&scale(0.0, 120.0)),
            ["0", "20", "40", "60", "80", "100", "120"]
        );
        assert_eq!(labels(&scale(1.02, 5.9)), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(
            labels(&scale(-0.13, 0.31)),
            ["−0.2", "−0.1", "0.0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(
            labels(&scale(0.0, 4e-7)),
            ["0", "10⁻⁷", "2×10⁻⁷", "3×10⁻⁷", "4×10⁻⁷"]
        );
    }

    #[test]
    fn a_tight_range_is_that_of_the_values() {
        let scale = Scale::fit(Axis::Linear, [3.0, 17.0], true);
        assert_eq!(scale.at(3.0), Some(0.0));
        assert_eq!(scale.at(17.0), Some(1.0));
        assert_eq!(labels(&scale), ["5", "10", "15"]);
    }

    #[test]
    fn constants_and_nothing_have_a_range() {
        for values in [
            vec![],
            vec![f64::NAN, f64::INFINITY],
            vec![5.0],
            vec![0.0, 0.0],
            vec![-3.0; 4],
        ] {
            for kind in [Axis::Linear, Axis::Log] {
                let scale = Scale::fit(kind, values.iter().copied(), false);
                assert!(scale.ticks().len() >= 2, "{kind:?} {values:?}");
                for tick in scale.ticks() {
                    let at = scale.at(tick.value).expect("a place");
                    assert!(
                        (-1e-9..=1.0 + 1e-9).contains(&at),
                        "{kind:?} {values:?} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn logarithmic_ticks_are_powers_or_their_parts() {
        let scale = |low, high| Scale::fit(Axis::Log, [low, high], true);
        assert_eq!(
            labels(&scale(1e-4, 10.0)),
            ["10⁻⁴", "0.001", "0.01", "0.1", "1", "10"]
        );
        assert_eq!(
            labels(&scale(1.0, 100.0)),
            ["1", "2", "5", "10", "20", "50", "100"]
        );
        assert_eq!(
            labels(&scale(200.0, 90e3)),
            ["300", "1000", "3000", "10000", "30000"]
        );
        assert_eq!(
            labels(&scale(0.0125, 0.03)),
            ["0.015", "0.02", "0.025", "0.03"]
        );
        assert!(labels(&scale(1e-18, 1.0)).len() <= 8);
    }

    #[test]
    fn zero_has_a_place_on_a_logarithmic_axis() {
        let scale = Scale::fit(Axis::Log, [0.0, 0.1, 10.0], false);
        let (zero, least) = (scale.at(0.0).expect("zero"), scale.at(0.1).expect("0.1"));
        assert!(0.0 < zero && zero < least);
        assert_eq!(labels(&scale)[0], "0");
        assert_eq!(Scale::fit(Axis::Log, [0.1, 10.0], false).at(0.0), None);
        assert_eq!(scale.at(-1.0), None);
    }

    #[test]
    fn numbers_on_hover_are_short() {
        let shown = [0.0, 118.004_7, -0.25, 1234.5, 1e-7].map(short);
        assert_eq!(shown, ["0", "118", "−0.25", "1234", "10⁻⁷"]);
    }

    #[test]
    fn places_are_in_the_order_of_the_values() {
        let scale = Scale::fit(Axis::Log, [0.2, 30.0], false);
        let places: Vec<f64> = [0.2, 1.0, 5.0, 30.0]
            .map(|x| scale.at(x).expect("a place"))
            .to_vec();
        assert!(places.is_sorted() && places[0] >= 0.0 && places[3] <= 1.0);
    }
}
