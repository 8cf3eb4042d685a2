//! Whole numbers in text: counts and indices, and what to say of anything else.

use super::lines::shown;
use crate::counts::{MOST_DECIMALS, Rounded, RowCount, RowSink, Unit};

/// Largest count that a floating-point number holds along with all smaller ones: 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// How a format writes its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountStyle {
    /// Digits only.
    Integer,
    /// Digits, or a decimal number whose value is whole (`3.0`, `3e0`), up to 2^53.
    Real,
    /// The same, and fractions.
    Fraction,
}

impl CountStyle {
    /// This one, unless whoever takes the rows takes fractions.
    pub fn or_fraction(self, sink: &impl RowSink) -> Self {
        if sink.takes_fractions() { CountStyle::Fraction } else { self }
    }
}

/// A count, `?` being an unknown one; else a line about what is wrong and the way out.
#[inline]
pub(super) fn parse_count(text: &str, style: CountStyle) -> Result<RowCount, String> {
    match parse_digits(text) {
        Some(count) => Ok(RowCount::Tokens(count)),
        None if text == "?" => Ok(RowCount::Unknown),
        None => parse_unusual_count(text, style),
    }
}

/// A count that is a floating-point number already: NaN is an unknown one, a fraction is what its shortest decimal form says.
///
/// # Errors
/// What is wrong with a negative, infinite or too large number, and the way out.
pub fn count_of(value: f64) -> Result<RowCount, String> {
    if value.is_nan() {
        return Ok(RowCount::Unknown);
    }
    if value >= 0.0 && value <= MAX_EXACT as f64 && value.fract() == 0.0 {
        return Ok(RowCount::Tokens(value as u64));
    }
    parse_count(&value.to_string(), CountStyle::Fraction)
}

/// The number that a text of one or more digits stands for, if it fits 64 bits.
#[inline]
pub(super) fn parse_digits(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// What a text that is no plain number means as a count.
#[cold]
fn parse_unusual_count(text: &str, style: CountStyle) -> Result<RowCount, String> {
    let value = shown(text);
    if text.is_empty() {
        return Err("the count is empty; write a whole number, or `?` when it is not known".to_owned());
    }
    let Ok(number) = text.parse::<f64>() else {
        return Err(format!("count {value} is not a number; write a whole number, or `?` when it is not known"));
    };
    if number.is_nan() || text.to_ascii_lowercase().contains("inf") {
        return Err(format!("count {value} is not finite; write a whole number, or `?` when it is not known"));
    }
    if text.starts_with('-') {
        return Err(format!("count {value} is negative; counts are whole numbers from 0"));
    }
    let too_large = || format!("count {value} is beyond 18446744073709551615 (2^64 - 1); scale the counts down");
    let decimal = Decimal::parse(text);
    match decimal.whole() {
        Whole::Fraction if style == CountStyle::Fraction => decimal.fraction().ok_or_else(|| match decimal.floor() {
            None => too_large(),
            Some(_) => format!("count {value} has more digits than 64 bits hold; round it to fewer decimal places"),
        }),
        Whole::Fraction => Err(format!(
            "count {value} is not whole; evidence needs whole counts, so scale or round them first (--method vb and em take \
             fractions)"
        )),
        Whole::Number(number) if style != CountStyle::Integer && number <= MAX_EXACT => Ok(RowCount::Tokens(number)),
        Whole::Number(number) if style == CountStyle::Integer => {
            Err(format!("count {value} is not written as a whole number; write {number}"))
        }
        Whole::Number(_) => Err(format!(
            "count {value} is beyond 2^53, where decimal numbers skip whole ones; write it with digits only"
        )),
        Whole::TooLarge => Err(too_large()),
    }
}

/// A decimal number that is not negative: digits, and how many of them stand before the point.
struct Decimal {
    digits: Vec<u8>,
    n_before_point: i64,
}

enum Whole {
    Number(u64),
    Fraction,
    TooLarge,
}

impl Decimal {
    /// Takes a text that is known to be a finite number apart.
    fn parse(text: &str) -> Self {
        let text = text.trim_start_matches('+');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // An exponent that leaves 32 bits is as good as infinite.
        let limit = i64::from(i32::MAX);
        let exponent = exponent.parse::<i64>().map_or(limit, |exponent| exponent.clamp(-limit, limit));
        let exponent = if text.contains("e-") || text.contains("E-") { -exponent.abs() } else { exponent };
        let digits = before.bytes().chain(after.bytes()).map(|byte| byte - b'0').collect();
        Decimal { digits, n_before_point: before.len() as i64 + exponent }
    }

    fn whole(&self) -> Whole {
        let n_before = usize::try_from(self.n_before_point).unwrap_or(0);
        let after = &self.digits[n_before.min(self.digits.len())..];
        if after.iter().any(|&digit| digit != 0) {
            return Whole::Fraction;
        }
        self.floor().map_or(Whole::TooLarge, Whole::Number)
    }

    /// What stands before the point, if it fits 64 bits.
    fn floor(&self) -> Option<u64> {
        let n_before = usize::try_from(self.n_before_point).unwrap_or(0);
        let before = &self.digits[..n_before.min(self.digits.len())];
        if before.iter().all(|&digit| digit == 0) {
            return Some(0);
        }
        // Past the last digit there are zeros; twenty of them overflow anyway.
        let zeros = std::iter::repeat_n(0, (n_before - before.len()).min(20));
        let mut digits = before.iter().copied().chain(zeros);
        digits.try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit)))
    }
}

impl Decimal {
    /// As a number of the largest unit that it is a multiple of, or rounded to the smallest; `None` beyond 64 bits.
    fn fraction(&self) -> Option<RowCount> {
        // Zeros up to the point, if the first digit stands further back.
        let n_zeros = usize::try_from(-self.n_before_point).unwrap_or(0).min(usize::from(MOST_DECIMALS) + 1);
        let mut digits: Vec<u8> = std::iter::repeat_n(0, n_zeros).chain(self.digits.iter().copied()).collect();
        let n_before = usize::try_from(self.n_before_point).unwrap_or(0);
        let n_kept = n_before + usize::from(MOST_DECIMALS);
        let rounds_up = digits.get(n_kept).is_some_and(|&digit| digit >= 5);
        let is_rounded = digits.iter().skip(n_kept).any(|&digit| digit != 0);
        digits.truncate(n_kept);
        while !is_rounded && digits.len() > n_before && digits.last() == Some(&0) {
            digits.pop();
        }
        let number =
            digits.iter().try_fold(0u64, |number, &digit| number.checked_mul(10)?.checked_add(u64::from(digit)))?;
        let number = number.checked_add(u64::from(rounds_up))?;
        let unit = Unit::new((digits.len() - n_before) as u8);
        Some(RowCount::Fraction(number, unit, if is_rounded { Rounded::Yes } else { Rounded::No }))
    }
}

/// An index counted from 1, turned into a value counted from 0; else what is wrong. There are at most `size` values.
#[inline]
pub(super) fn parse_one_based(text: &str, size: u32) -> Result<u32, String> {
    match parse_digits(text) {
        Some(index) if index >= 1 && index <= u64::from(size) => Ok((index - 1) as u32),
        _ => Err(wrong_index(text, 1, size)),
    }
}

/// An index counted from 0; else what is wrong. There are at most `size` values.
#[inline]
pub(super) fn parse_zero_based(text: &str, size: u32) -> Result<u32, String> {
    match parse_digits(text) {
        Some(index) if index < u64::from(size) => Ok(index as u32),
        _ if size == 0 => Err(format!("index {} stands where there is no value at all", shown(text))),
        _ => Err(wrong_index(text, 0, size - 1)),
    }
}

#[cold]
fn wrong_index(text: &str, first: u32, last: u32) -> String {
    let value = shown(text);
    match parse_digits(text) {
        Some(0) if first == 1 => "index 0 is out of range; indices count from 1, so add 1 to all of them".to_owned(),
        Some(_) => format!("index {value} is beyond {last}, the largest one there can be; correct it, or the size"),
        None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("index {value} is beyond {last}, the largest one there can be; correct it, or the size")
        }
        None if text.starts_with('-') => format!("index {value} is negative; indices count from {first}"),
        None => format!("index {value} is not a whole number; indices are whole numbers from {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_in_memory_are_counts_as_they_are_written() {
        assert_eq!(count_of(3.0), Ok(RowCount::Tokens(3)));
        assert_eq!(count_of(f64::NAN), Ok(RowCount::Unknown));
        assert_eq!(count_of(0.1), Ok(RowCount::Fraction(1, Unit::new(1), Rounded::No)));
        assert_eq!(count_of(1.0 / 3.0), Ok(RowCount::Fraction(333_333_333, Unit::new(9), Rounded::Yes)));
        for value in [-1.0, -0.5, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert!(count_of(value).is_err(), "{value}");
        }
    }

    fn refusal(text: &str, style: CountStyle) -> String {
        parse_count(text, style).expect_err(text)
    }

    #[test]
    fn digits_are_counts_up_to_64_bits() {
        for style in [CountStyle::Integer, CountStyle::Real] {
            assert_eq!(parse_count("0", style), Ok(RowCount::Tokens(0)));
            assert_eq!(parse_count("007", style), Ok(RowCount::Tokens(7)));
            assert_eq!(parse_count("18446744073709551615", style), Ok(RowCount::Tokens(u64::MAX)));
            assert_eq!(parse_count("?", style), Ok(RowCount::Unknown));
            assert!(refusal("18446744073709551616", style).contains("beyond"));
        }
    }

    #[test]
    fn whole_decimal_numbers_are_counts_where_a_format_writes_reals() {
        for (text, count) in
            [("3.0", 3), ("3.", 3), ("3e0", 3), ("1.5e1", 15), ("+2.0", 2), ("0.0", 0), ("20e-1", 2), ("1e3", 1000)]
        {
            assert_eq!(parse_count(text, CountStyle::Real), Ok(RowCount::Tokens(count)), "{text}");
        }
        assert_eq!(parse_count("9007199254740992.0", CountStyle::Real), Ok(RowCount::Tokens(MAX_EXACT)));
        assert!(refusal("9007199254740993.0", CountStyle::Real).contains("2^53"));
        assert!(refusal("1e400", CountStyle::Real).contains("beyond"));
        assert!(refusal("1e99999999999999999999", CountStyle::Real).contains("beyond"));
        assert!(refusal("1e-99999999999999999999", CountStyle::Real).contains("not whole"));
        assert!(refusal("2.00000000000000000000001", CountStyle::Real).contains("not whole"));
    }

    #[test]
    fn every_other_count_is_refused_with_its_value_and_a_way_out() {
        for (text, wanted) in [
            ("", "the count is empty; write a whole number, or `?`"),
            ("-3", "`-3` is negative"),
            ("-0.5", "`-0.5` is negative"),
            ("2.5", "`2.5` is not whole; evidence needs whole counts"),
            ("1e-3", "`1e-3` is not whole"),
            ("NaN", "`NaN` is not finite"),
            ("inf", "`inf` is not finite"),
            ("-Infinity", "`-Infinity` is not finite"),
            ("many", "`many` is not a number"),
            ("1,000", "`1,000` is not a number"),
            ("0x10", "`0x10` is not a number"),
            ("٣", "is not a number"),
        ] {
            for style in [CountStyle::Integer, CountStyle::Real] {
                assert!(refusal(text, style).contains(wanted), "{text}: {}", refusal(text, style));
            }
        }
        assert!(refusal("3.0", CountStyle::Integer).contains("`3.0` is not written as a whole number; write 3"));
        assert!(refusal("1e3", CountStyle::Integer).contains("write 1000"));
    }

    #[test]
    fn indices_count_from_one() {
        assert_eq!(parse_one_based("1", 3), Ok(0));
        assert_eq!(parse_one_based("3", 3), Ok(2));
        for (text, wanted) in [
            ("0", "index 0 is out of range; indices count from 1"),
            ("4", "`4` is beyond 3"),
            ("99999999999999999999999", "is beyond 3"),
            ("-1", "`-1` is negative"),
            ("1.0", "`1.0` is not a whole number"),
            ("?", "`?` is not a whole number"),
        ] {
            let message = parse_one_based(text, 3).expect_err(text);
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn fractions_are_kept_as_they_are_written() {
        let fraction = |n: u64, decimals: u8| Ok(RowCount::Fraction(n, Unit::new(decimals), Rounded::No));
        let rounded = |n: u64| Ok(RowCount::Fraction(n, Unit::new(9), Rounded::Yes));
        for (text, count) in [
            ("2.5", fraction(25, 1)),
            ("0.25", fraction(25, 2)),
            (".5", fraction(5, 1)),
            ("1.50", fraction(15, 1)),
            ("25e-1", fraction(25, 1)),
            ("1e-3", fraction(1, 3)),
            ("1.5e1", Ok(RowCount::Tokens(15))),
            ("3.0", Ok(RowCount::Tokens(3))),
            ("123456789.987654321", fraction(123_456_789_987_654_321, 9)),
            ("0.12345678949", rounded(123_456_789)),
            ("0.1234567895", rounded(123_456_790)),
            ("0.99999999996", rounded(1_000_000_000)),
            ("1e-12", rounded(0)),
        ] {
            assert_eq!(parse_count(text, CountStyle::Fraction), count, "{text}");
        }
        for (text, words) in [
            ("20000000000.123456789", "round it to fewer decimal places"),
            ("99999999999999999999.5", "beyond 18446744073709551615"),
            ("-0.5", "is negative"),
            ("nan", "is not finite"),
            ("0.5x", "is not a number"),
        ] {
            assert!(
                refusal(text, CountStyle::Fraction).contains(words),
                "{text}: {}",
                refusal(text, CountStyle::Fraction)
            );
        }
        assert!(refusal("2.5", CountStyle::Real).contains("`2.5` is not whole"));
    }

    proptest! {
        #[test]
        fn counts_never_panic(text in "\\PC{0,12}") {
            let _ = parse_count(&text, CountStyle::Integer);
            let _ = parse_count(&text, CountStyle::Fraction);
            let _ = parse_count(&text, CountStyle::Real);
        }

        #[test]
        fn numbers_like_text_never_panics(text in "[+-]?[0-9]{0,4}[.]?[0-9]{0,4}([eE][+-]?[0-9]{0,22})?") {
            let _ = parse_count(&text, CountStyle::Real);
        }

        #[test]
        fn whole_values_survive_every_spelling(count in 0..=MAX_EXACT) {
            for text in [format!("{count}.000"), format!("{count}e0"), format!("0.{count:020}e20")] {
                prop_assert_eq!(parse_count(&text, CountStyle::Real), Ok(RowCount::Tokens(count)));
            }
        }
    }
}
