//! The numbers that the kernels compute with.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// `f32` with polynomials that a compiler turns into vector instructions, and `f64` with the
/// standard library.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
{
    const ZERO: Self;
    const ONE: Self;

    /// The nearest number.
    fn from_f64(x: f64) -> Self;

    /// `exp(-|x|)`, down to the smallest subnormal number.
    fn exp_of_minus_abs(self) -> Self;

    /// `ln(1 + x)` for `x` between 0 and 1, with full relative precision.
    fn ln_1p_of_unit(self) -> Self;

    /// `ln(x)` for normal numbers `x` up to 1.
    fn ln_of_unit(self) -> Self;

    /// `tanh(x)`, with full relative precision.
    fn tanh_of_any(self) -> Self;
}

/// `sigmoid(x)` and `sigmoid(-x)`, of one exponential and both with all their digits.
#[inline(always)]
pub(super) fn sigmoids<R: Real>(x: R) -> [R; 2] {
    let e = x.exp_of_minus_abs();
    let likely = R::ONE / (R::ONE + e);
    let rare = e * likely;
    if x >= R::ZERO {
        [likely, rare]
    } else {
        [rare, likely]
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }

    #[inline(always)]
    fn exp_of_minus_abs(self) -> Self {
        // Below, the result rounds to zero. Not `max`, which would swallow a NaN.
        const LOWEST: f32 = -104.0;
        // Added to a small number, it leaves the nearest integer in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let x = -self.abs();
        let x = if x < LOWEST { LOWEST } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let k = shifted - ROUND;
        let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;

        // The series of exp(r) for |r| <= ln(2) / 2, to a relative error of 5e-9.
        let mut p = r * (1.0 / 5040.0) + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        let exp = (p * (r * r) + r) + 1.0;

        // In two factors, because 2^k itself may be too small for a normal number.
        let k = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
        let half = k >> 1;
        (exp * power_of_two(half)) * power_of_two(k - half)
    }

    #[inline(always)]
    fn ln_1p_of_unit(self) -> Self {
        // 2 artanh(s) with s = x / (2 + x) <= 1/3, to a relative error of 2e-8. Twice s is computed
        // at once: halves of subnormal numbers would be rounded.
        let twice = self / (1.0 + 0.5 * self);
        let square = twice * twice * 0.25;
        let mut p = square * (1.0 / 13.0) + 1.0 / 11.0;
        p = p * square + 1.0 / 9.0;
        p = p * square + 1.0 / 7.0;
        p = p * square + 1.0 / 5.0;
        p = p * square + 1.0 / 3.0;
        twice + twice * (square * p)
    }

    #[inline(always)]
    fn ln_of_unit(self) -> Self {
        // x = m 2^k with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh((m - 1) / (m + 1)).
        const ROOT_HALF: u32 = 0x3f35_04f3;
        let bits = self.to_bits().wrapping_sub(ROOT_HALF);
        let k = ((bits as i32) >> 23) as f32;
        let m = f32::from_bits((bits & 0x007f_ffff).wrapping_add(ROOT_HALF));
        let twice = 2.0 * ((m - 1.0) / (m + 1.0));
        let square = twice * twice * 0.25;
        let mut p = square * (1.0 / 9.0) + 1.0 / 7.0;
        p = p * square + 1.0 / 5.0;
        p = p * square + 1.0 / 3.0;
        let ln_m = twice + twice * (square * p);
        k * LN_2_HIGH + (k * LN_2_LOW + ln_m)
    }

    #[inline(always)]
    fn tanh_of_any(self) -> Self {
        // (1 - e) / (1 + e) with e = exp(-2|x|); near zero 1 - e is taken from the series of e.
        let twice = 2.0 * self.abs();
        let e = twice.exp_of_minus_abs();
        let minus = -twice;
        let mut p = minus * (1.0 / 5040.0) + 1.0 / 720.0;
        p = p * minus + 1.0 / 120.0;
        p = p * minus + 1.0 / 24.0;
        p = p * minus + 1.0 / 6.0;
        p = p * minus + 0.5;
        let near = -(p * (minus * minus) + minus);
        let gap = if twice < 0.34 { near } else { 1.0 - e };
        (gap / (2.0 - gap)).copysign(self)
    }
}

// ln 2 in two parts. The first has nine bits, so that its multiples are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;

/// `2^k` for `k` from -126 to 127. Other bits, which a NaN leads to, give some number.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }

    #[inline(always)]
    fn exp_of_minus_abs(self) -> Self {
        (-self.abs()).exp()
    }

    #[inline(always)]
    fn ln_1p_of_unit(self) -> Self {
        self.ln_1p()
    }

    #[inline(always)]
    fn ln_of_unit(self) -> Self {
        self.ln()
    }

    #[inline(always)]
    fn tanh_of_any(self) -> Self {
        self.tanh()
    }
}
