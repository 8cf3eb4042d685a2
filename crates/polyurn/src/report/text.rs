//! Words and numbers as a page shows them: escaped, rounded, quoted.

/// HTML in which what stands between two backticks is set as code.
pub fn with_code(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        out += &format!("{before}<code>{code}</code>");
        rest = after;
    }
    out + rest
}

/// Text that is safe inside HTML and XML, between tags and inside quoted attributes. Characters that XML forbids and those
/// that turn the direction of writing around are replaced, since they could break a page or hide what it says.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a text that is too long, with an ellipsis.
pub fn shorten(text: &str, n_chars: usize) -> String {
    let flat = |c: char| if c.is_whitespace() { ' ' } else { c };
    if text.chars().count() <= n_chars {
        return text.chars().map(flat).collect();
    }
    let kept: String = text.chars().take(n_chars.saturating_sub(1)).map(flat).collect();
    format!("{}…", kept.trim_end())
}

/// Texts that are shortened; where the beginnings of several are the same, the word in which they part is shown too.
pub fn shorten_apart(texts: &[String], n_chars: usize) -> Vec<String> {
    let short: Vec<String> = texts.iter().map(|text| shorten(text, n_chars)).collect();
    let apart = |(ix, text): (usize, &String)| {
        let alike = (0..texts.len()).filter(|&other| short[other] == short[ix] && texts[other] != *text);
        let same = |other: usize| text.chars().zip(texts[other].chars()).take_while(|(x, y)| x == y).count();
        // The one that it is most like is the hardest to be told from.
        let Some(n_same) = alike.map(same).max() else { return short[ix].clone() };
        let chars: Vec<char> = text.chars().collect();
        // From the word on in which they part.
        let from = chars[..n_same].iter().rposition(|c| c.is_whitespace()).map_or(n_same, |blank| blank + 1);
        let head: String = chars.iter().take(n_chars / 3).collect();
        let tail: String = chars[from..].iter().collect();
        format!("{}… {}", head.trim_end(), shorten(&tail, n_chars - n_chars / 3 - 2))
    };
    texts.iter().enumerate().map(apart).collect()
}

/// With so many decimals, and a true minus sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// A log evidence: as many decimals as its error warrants.
pub fn log_value(value: f64, error: Option<f64>) -> String {
    if value == f64::NEG_INFINITY {
        return "−∞".into();
    }
    fixed(value, error.map_or(4, error_decimals))
}

/// A log evidence with its error behind it.
pub fn log_value_with_error(value: f64, error: Option<f64>) -> String {
    match error {
        // Errors of the arithmetic alone.
        Some(error) if value.is_finite() && error > 0.0 && error < SMALLEST_ERROR => {
            format!("{} ± <{SMALLEST_ERROR:e}", log_value(value, None)).replace("e-", "e−")
        }
        Some(error) if value.is_finite() && error > 0.0 => {
            format!("{} ± {}", log_value(value, Some(error)), fixed(error, error_decimals(error)))
        }
        _ => log_value(value, None),
    }
}

/// Errors below this are shown as no larger than it.
const SMALLEST_ERROR: f64 = 1e-6;

/// Decimals that show two digits of an error, within reason.
fn error_decimals(error: f64) -> usize {
    if error > 0.0 { (1.0 - error.log10().floor()).clamp(0.0, 6.0) as usize } else { 4 }
}

/// About four digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || value == value.trunc() && size < 1e7 {
        return with_commas(&fixed(value, 0));
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}").replace('-', "−");
    }
    let decimals = (3.0 - size.log10().floor()).clamp(0.0, 8.0) as usize;
    let text = fixed(value, decimals);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    with_commas(text)
}

/// Groups the digits before the point by three.
pub fn with_commas(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('−').map_or(("", whole), |digits| ("−", digits));
    let mut out = sign.to_owned();
    for (ix, digit) in digits.chars().enumerate() {
        if ix > 0 && (digits.len() - ix).is_multiple_of(3) && digits.len() > 4 {
            out.push(',');
        }
        out.push(digit);
    }
    rest.map_or(out.clone(), |rest| format!("{out}.{rest}"))
}

/// A probability in per cent. What is nearly sure or nearly impossible is not rounded to 100 or 0.
pub fn percent(p: f64) -> String {
    // A probability too small for a number is none that cannot be.
    if p < 5e-4 {
        "<0.1 %".into()
    } else if p > 0.9995 {
        ">99.9 %".into()
    } else {
        format!("{} %", fixed(100.0 * p, 1))
    }
}

/// The same with a standard error, with the digits that tables for a terminal have. Where the error is so large that both would
/// mislead, the range that they make; where nothing is known of it, that.
pub fn percent_with_error(p: f64, error: Option<f64>, is_error_unknown: bool) -> String {
    match error {
        _ if is_error_unknown => format!("{}, error unknown", percent(p)),
        Some(error) if error >= 0.25 => {
            let (lo, hi) = ((p - error).max(0.0), (p + error).min(1.0));
            format!("{} to {} %", fixed(100.0 * lo, 0), fixed(100.0 * hi, 0))
        }
        Some(error) if error >= 5e-5 => format!("{} ± {} %", fixed(100.0 * p, 2), fixed(100.0 * error, 2)),
        _ => percent(p),
    }
}

/// A command to be pasted into a shell.
pub fn shell(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// About how wide a text is, in pixels. Letters of fonts differ; this errs on the wide side.
pub fn width_of(text: &str, size: f64) -> f64 {
    let one = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | ';' | '|' | '\'' | '(' | ')' | '[' | ']' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '=' | '+' | '<' | '>' | '−' | '±' | '…' => 0.9,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.is_ascii() => 0.63,
        c if (c as u32) < 0x1100 => 0.62,
        _ => 1.0,
    };
    text.chars().map(one).sum::<f64>() * size
}

/// As much of a text as fits into so many pixels, with an ellipsis where it is cut.
pub fn cut_to(text: &str, most: f64, size: f64) -> String {
    let text = shorten(text, text.chars().count());
    if width_of(&text, size) <= most {
        return text;
    }
    let room = most - width_of("…", size);
    let mut used = 0.0;
    let fits = |c: &char| {
        used += width_of(c.encode_utf8(&mut [0; 4]), size);
        used <= room
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_begin_alike_are_told_apart() {
        let texts =
            ["class[2] -> one two three; class -> k[2] -> four", "class[2] -> one two three; class -> k[3] -> four"];
        let texts = texts.map(str::to_owned);
        assert_eq!(shorten_apart(&texts, 30), ["class[2] -… k[2] -> four", "class[2] -… k[3] -> four"]);
        // Others are shortened as ever; the same text twice has no difference to show.
        let texts =
            ["short", "a long text that is only once here", "twice the same text, word for word"].map(str::to_owned);
        let all = [&texts[..], &texts[2..]].concat();
        assert_eq!(shorten_apart(&all, 10), ["short", "a long te…", "twice the…", "twice the…"]);
        // Two that part late, beside one that parts from them early.
        let late = "so long a beginning x and on and on and on and on";
        let texts = [format!("{late} one"), format!("{late} two"), "so long a beginning y and".into()];
        assert_eq!(shorten_apart(&texts, 18), ["so lon… one", "so lon… two", "so lon… y and"]);
    }

    #[test]
    fn backticks_come_in_pairs() {
        assert_eq!(with_code("a `b c` d `e` `f"), "a <code>b c</code> d <code>e</code> `f");
        assert_eq!(with_code(&escape("`<b>`")), "<code>&lt;b&gt;</code>");
    }

    #[test]
    fn nothing_in_a_label_is_markup() {
        assert_eq!(escape("<script>\"a\" & 'b'"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;");
        assert_eq!(escape("a\u{0}b\u{202e}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(escape("=cmd()|' /C calc'!A0"), "=cmd()|&#39; /C calc&#39;!A0");
    }

    #[test]
    fn numbers_have_the_digits_that_their_errors_allow() {
        assert_eq!(log_value_with_error(-55.8512, Some(0.031)), "−55.851 ± 0.031");
        assert_eq!(log_value_with_error(-1153.12, Some(12.3)), "−1153 ± 12");
        assert_eq!(log_value(-80.528, None), "−80.5280");
        assert_eq!(log_value_with_error(f64::NEG_INFINITY, Some(1.0)), "−∞");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!((short(0.25), short(12345.0), short(-1.5e-9)), ("0.25".into(), "12,345".into(), "−1.500e−9".into()));
        assert_eq!(log_value_with_error(-1157.8499, Some(0.0)), "−1157.8499");
        assert_eq!(log_value_with_error(-1157.8499, Some(3e-13)), "−1157.8499 ± <1e−6");
        assert_eq!(percent(0.686), "68.6 %");
        // As a terminal has it: 0.6685 +- 0.0050.
        assert_eq!(percent_with_error(0.6685, Some(0.0050), false), "66.85 ± 0.50 %");
        assert_eq!(percent_with_error(0.9996, Some(0.0001), false), "99.96 ± 0.01 %");
        assert_eq!(percent_with_error(1.0, Some(0.58), false), "42 to 100 %");
        assert_eq!(percent_with_error(0.7, None, true), "70.0 %, error unknown");
        assert_eq!([0.0, 1e-9, 0.99999, 1.0].map(percent), ["<0.1 %", "<0.1 %", ">99.9 %", ">99.9 %"]);
    }

    #[test]
    fn a_command_can_be_pasted() {
        let words = ["polyurn", "select", "--model", "r[1..3] -> i j", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), r"polyurn select --model 'r[1..3] -> i j' 'it'\''s' ''");
    }

    #[test]
    fn long_labels_are_cut() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        assert_eq!(shorten("a\nb", 6), "a b");
        assert_eq!(cut_to("short", 100.0, 12.0), "short");
        let cut = cut_to("a label that is much too long", 60.0, 12.0);
        assert!(cut.ends_with('…') && width_of(&cut, 12.0) <= 60.0, "{cut}");
        assert_eq!(cut_to("abc", 0.0, 12.0), "…");
    }
}
