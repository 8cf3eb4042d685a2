//! Amounts of memory in words.

const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// A number of bytes for people, with about three digits, in a unit of which there is at least one.
pub(crate) fn show_bytes(bytes: f64) -> String {
    let mut value = bytes.round();
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let name = if value == 1.0 && unit == 0 { "byte" } else { UNITS[unit] };
    let number = match value {
        value if value >= 1e6 => format!("{value:.1e}"),
        value if unit == 0 || value >= 99.95 => format!("{value:.0}"),
        value => {
            let decimals = if value < 9.995 { 2 } else { 1 };
            format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::show_bytes;

    #[test]
    fn every_amount_has_a_number_that_says_something() {
        let sizes = [0.0, 1.0, 512.4, 999.7, 1024.0, 38_400.0, 999_600.0, 1e9, 4_294_967_296.0, 1.5e16, 3e30];
        let shown = sizes.map(show_bytes);
        let wanted = [
            "0 bytes",
            "1 byte",
            "512 bytes",
            "1 kB",
            "1.02 kB",
            "38.4 kB",
            "1 MB",
            "1 GB",
            "4.29 GB",
            "15 PB",
            "3.0e15 PB",
        ];
        assert_eq!(shown, wanted);
    }
}
