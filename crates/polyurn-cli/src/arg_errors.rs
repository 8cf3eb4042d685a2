//! Wrong arguments, said in one line and in plain words.

use std::process::ExitCode;

/// Prints help and versions that were asked for; else says in one line what is wrong.
pub fn report(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let is_request = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        // Nothing to be done when the terminal has gone away.
        let _ = error.print();
        return if is_request { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    crate::output::say(&one_line(&error.render().to_string()));
    ExitCode::from(2)
}

/// What is wrong and the hints below it, without the usage.
fn one_line(text: &str) -> String {
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let mut all = String::new();
    for line in lines {
        all += match line {
            _ if all.is_empty() => "",
            _ if line.starts_with("tip:") => "; ",
            _ if all.ends_with(':') || line.starts_with('[') => " ",
            _ => ", ",
        };
        all += line;
    }
    in_plain_words(&all)
}

/// What number was expected, where a parser says how it failed.
fn in_plain_words(line: &str) -> String {
    const NO_NUMBER: [&str; 3] = [
        "invalid digit found in string",
        "cannot parse integer from empty string",
        "number too large to fit in target type",
    ];
    let Some((start, why)) = line.rsplit_once(": ") else { return line.to_owned() };
    let range = why.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
    match range {
        Some((first, last)) if last.trim_start_matches('=') == u64::MAX.to_string() => {
            format!("{start}: expected a whole number from {first} on")
        }
        Some((first, last)) => {
            format!("{start}: expected a whole number from {first} to {}", last.trim_start_matches('='))
        }
        None if NO_NUMBER.contains(&why) => format!("{start}: expected a whole number, at most {}", u64::MAX),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lines_become_one() {
        let text =
            "error: the following required arguments were not provided:\n  --model <M>\n  --data <D>\n\nUsage: x\n";
        assert_eq!(
            one_line(text),
            "error: the following required arguments were not provided: --model <M>, --data <D>"
        );
        let text = "error: invalid value 'x' for '--m <M>'\n  [possible values: a, b]\n\n  tip: one is 'a'\n\nFor more information, try '--help'.\n";
        assert_eq!(one_line(text), "error: invalid value 'x' for '--m <M>' [possible values: a, b]; tip: one is 'a'");
    }

    #[test]
    fn a_number_that_is_none_is_met_with_what_is_expected() {
        let start = "error: invalid value '0' for '--threads <N>'";
        assert_eq!(
            in_plain_words(&format!("{start}: 0 is not in 1..=65535")),
            format!("{start}: expected a whole number from 1 to 65535")
        );
        assert_eq!(
            in_plain_words(&format!("{start}: 0 is not in 1..18446744073709551615")),
            format!("{start}: expected a whole number from 1 on")
        );
        assert_eq!(
            in_plain_words(&format!("{start}: invalid digit found in string")),
            format!("{start}: expected a whole number, at most 18446744073709551615")
        );
        assert_eq!(in_plain_words("error: unexpected argument"), "error: unexpected argument");
    }
}
