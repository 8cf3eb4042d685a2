//! Values that people write: sizes, times, ranges; and, from the library, numbers as people read them.

use crate::args::AValues;
use polyurn::engine::exact::TotalsRange;
use polyurn::engine::smc::When;
use polyurn::predict::Draw;
pub use polyurn::shown::text::*;
use std::time::Duration;

/// `1`, `0.1,1,10`, or `1e-5..1e5:21`.
pub fn parse_a_values(text: &str) -> Result<AValues, String> {
    let number = |part: &str| -> Result<f64, String> {
        match part.trim().parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
            _ => Err(format!("`{}` is not a positive number", part.trim())),
        }
    };
    let Some((low, rest)) = text.split_once("..") else {
        let values: Vec<f64> = text.split(',').map(number).collect::<Result<_, _>>()?;
        let is_twice = |(ix, value): &(usize, &f64)| values[..*ix].contains(value);
        return match values.iter().enumerate().find(is_twice) {
            Some((_, twice)) => Err(format!("{twice} is given twice; give each value once")),
            None => Ok(AValues(values)),
        };
    };
    let (high, n) = rest.split_once(':').ok_or("a range needs a number of values: 1e-5..1e5:21")?;
    let (low, high) = (number(low)?, number(high)?);
    let n: usize = n.trim().parse().map_err(|_| format!("`{n}` is not a number of values"))?;
    if !(2..=100_000).contains(&n) || low >= high {
        return Err("a range runs upwards and has 2 to 100000 values: 1e-5..1e5:21".into());
    }
    let step = (high.ln() - low.ln()) / (n - 1) as f64;
    // Without the last digits, which are rounding: 0.1 and not 0.09999999999999998.
    let rounded = |value: f64| format!("{value:.13e}").parse().unwrap_or(value);
    let mut values: Vec<f64> = (0..n).map(|ix| rounded(low * (step * ix as f64).exp())).collect();
    values[0] = low;
    values[n - 1] = high;
    Ok(AValues(values))
}

/// Factors of `a`, or `none` of them.
pub fn parse_sensitivity(text: &str) -> Result<AValues, String> {
    if text == "none" { Ok(AValues(Vec::new())) } else { parse_a_values(text) }
}

/// `word=0.01`, `word=0.01,0.1` or `word=1e-3..1:7`.
pub fn parse_pseudo_count(text: &str) -> Result<(String, AValues), String> {
    let (node, values) = text.rsplit_once('=').ok_or("write it as NODE=VALUE, for example word=0.01")?;
    Ok((node.trim().to_owned(), parse_a_values(values)?))
}

/// A name without the blanks around it.
pub fn parse_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() { Err("a name is missing".into()) } else { Ok(name.to_owned()) }
}

/// `9..30`.
pub fn parse_totals(text: &str) -> Result<TotalsRange, String> {
    let (low, high) = text.split_once("..").ok_or("write it as LO..HI, for example 9..30")?;
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| format!("`{part}` is not a number of tokens"));
    Ok(TotalsRange::Between(number(low)?, number(high)?))
}

/// `4G`, `500M`, `1.5GiB`, or plain bytes.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let (value, unit) = split_unit(text)?;
    let factor = match unit.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("`{unit}` is no unit of memory; use K, M, G or T")),
    };
    let bytes = value * factor;
    if !(1.0..1e18).contains(&bytes) {
        return Err("memory must be between one byte and 1000000 T".into());
    }
    Ok(bytes as u64)
}

/// `60s`, `500ms`, `5m`, `1.5h`, or plain seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (value, unit) = split_unit(text)?;
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("`{unit}` is no unit of time; use ms, s, m, h or d")),
    };
    let seconds = value * factor;
    if !(seconds > 0.0 && seconds < 1e9) {
        return Err("a time must be positive".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn split_unit(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let value = text[..end].parse().map_err(|_| format!("`{text}` does not start with a number"))?;
    Ok((value, text[end..].trim()))
}

/// Reads `--heat`: a factor of at least 1.
pub fn parse_heat(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=1e15).contains(&factor) => Ok(factor),
        _ => Err("expected a factor from 1 to 1e15".into()),
    }
}

/// `best`, or the number of a draw, from 1.
pub fn parse_draw(text: &str) -> Result<Draw, String> {
    match (text, text.parse::<usize>()) {
        ("best", _) => Ok(Draw::Best),
        (_, Ok(number)) if number > 0 => Ok(Draw::Number(number - 1)),
        _ => Err("expected `best` or the number of a draw, from 1".into()),
    }
}

/// Reads `--tol`: a share of the objective.
pub fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to below 1".into()),
    }
}

/// Reads `--kappa`.
pub fn parse_kappa(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(kappa) if kappa > 0.5 && kappa <= 1.0 => Ok(kappa),
        _ => Err("expected a number above 0.5 and at most 1".into()),
    }
}

/// Reads `--tau`.
pub fn parse_tau(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(tau) if tau >= 0.0 && tau.is_finite() => Ok(tau),
        _ => Err("expected a number from 0 on".into()),
    }
}

/// Reads a number of particles: digits, or a short form such as `1e5`.
pub fn parse_particles(text: &str) -> Result<u64, String> {
    let short = || text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && *n < 9e15).map(|n| n as u64);
    match text.parse::<u64>().ok().or_else(short) {
        Some(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number from 1 on".into()),
    }
}

/// Reads `--ess`: a share, `always` or `never`.
pub fn parse_when(text: &str) -> Result<When, String> {
    match (text, text.parse::<f64>()) {
        ("always", _) => Ok(When::Always),
        ("never", _) => Ok(When::Never),
        (_, Ok(share)) if share > 0.0 && share <= 1.0 => Ok(When::EssBelow(share)),
        _ => Err("expected a share of the particles above 0 and up to 1, `always` or `never`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particles_are_whole_numbers() {
        assert_eq!(parse_particles("768"), Ok(768));
        assert_eq!(parse_particles("1e12"), Ok(1_000_000_000_000));
        for text in ["0", "-3", "2.5", "1e-3", "1e40", "inf", "NaN", "many", ""] {
            assert!(parse_particles(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_a_may_be_one_a_list_or_a_range() {
        assert_eq!(parse_a_values("2.5").unwrap().0, [2.5]);
        assert_eq!(parse_a_values("0.1, 1,10").unwrap().0, [0.1, 1.0, 10.0]);
        let range = parse_a_values("1e-2..1e2:5").unwrap().0;
        assert_eq!(range, [0.01, 0.1, 1.0, 10.0, 100.0]);
        for bad in ["", "x", "0", "-1", "nan", "inf", "1..2", "2..1:3", "1..2:1", "1..2:x", "1,,2", "1,2,1.0"] {
            assert!(parse_a_values(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_and_time_take_units() {
        assert_eq!(parse_memory("4G").unwrap(), 4_000_000_000);
        assert_eq!(parse_memory("1.5MiB").unwrap(), 1_572_864);
        assert_eq!(parse_memory("800").unwrap(), 800);
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(parse_duration("0.25").unwrap(), Duration::from_millis(250));
        for bad in ["", "G", "0", "-4G", "4X"] {
            assert!(parse_memory(bad).is_err(), "{bad}");
        }
        for bad in ["", "s", "0s", "-1s", "5 weeks", "1e3s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
