//! Numbers as people read them.

use super::column::Format;
use crate::plot::sign;

/// A number in the format; text means the shortest form.
pub fn show(value: f64, format: Format) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match format {
        Format::Plain => sign(&value.to_string()),
        Format::Decimals(decimals) => sign(&format!("{value:.decimals$}")),
        Format::Significant(digits) => significant(value, digits),
    }
}

/// The same with a plus before numbers above zero.
pub fn signed(value: f64, format: Format) -> String {
    let text = show(value, format);
    let positive = !text.starts_with('−') && text.chars().any(|c| ('1'..='9').contains(&c));
    if positive { format!("+{text}") } else { text }
}

fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let Some((_, power)) = scientific.split_once('e') else {
        return scientific;
    };
    let power: i32 = power.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        let decimals = (digits as i32 - 1 - power).max(0) as usize;
        sign(&format!("{value:.decimals$}"))
    } else {
        sign(&scientific.replace("e-", "e−"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_are_kept_at_any_size() {
        let show = |value| show(value, Format::Significant(3));
        assert_eq!(show(0.0), "0");
        assert_eq!(show(0.012_345), "0.0123");
        assert_eq!(show(-12.345), "−12.3");
        assert_eq!(show(9.999), "10.0");
        assert_eq!(show(123_456.0), "123456");
        assert_eq!(show(1.234e-7), "1.23e−7");
        assert_eq!(show(-1.234e9), "−1.23e9");
        assert_eq!(show(f64::NAN), "–");
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(signed(0.1, Format::Decimals(2)), "+0.10");
        assert_eq!(signed(-0.1, Format::Decimals(2)), "−0.10");
        assert_eq!(signed(-0.001, Format::Decimals(2)), "0.00");
        assert_eq!(signed(0.001, Format::Decimals(2)), "0.00");
    }
}
