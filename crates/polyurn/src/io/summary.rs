//! What a file holds, at a glance, and what looks odd in it.

use super::lines::shown;
use super::number::parse_digits;
use super::{Compression, Format, Origin};
use crate::counts::{CodeList, Column, CountList, Dataset, Labels, MISSING};
use serde::Serialize;

/// How many labels of a column are listed.
const N_MOST_COMMON: usize = 5;

/// Fewer rows than this say little about a column.
const MIN_ROWS_FOR_ID: usize = 10;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The file.
    pub source: String,
    /// Its format.
    pub format: Format,
    /// How it was compressed, if it was.
    pub compression: Option<Compression>,
    /// Rows or entries in the file.
    pub rows: u64,
    /// Rows that differ in their values, unknown cells left out.
    pub distinct_rows: u64,
    /// Tokens: the sum of the counts.
    pub tokens: u64,
    /// Distinct rows whose count is zero.
    pub zero_rows: u64,
    /// Cells whose count is `?`.
    pub unknown_cells: u64,
    /// Which columns are missing together, most tokens first; rows without a missing value are a pattern too.
    pub missing_patterns: Vec<MissingPattern>,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnSummary>,
    /// What the reader thought worth saying.
    pub warnings: Vec<String>,
    /// What looks odd, each with a way out.
    pub odd: Vec<String>,
}

/// Rows that miss the same values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MissingPattern {
    /// The columns whose value is missing.
    pub columns: Vec<String>,
    /// Distinct rows.
    pub rows: u64,
    /// Tokens.
    pub tokens: u64,
    /// Share of all tokens, from 0 to 1; 0 when there are none.
    pub share: f64,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Its name, or its number from 1 where it has none.
    pub name: String,
    /// How many values it has.
    pub values: u64,
    /// Distinct rows in which its value is missing.
    pub missing_rows: u64,
    /// Tokens whose value is missing.
    pub missing_tokens: u64,
    /// The most common labels, most tokens first; of equal ones the first in the file.
    pub most_common: Vec<LabelCount>,
    /// True when there are labels and each is a whole number.
    pub all_integers: bool,
}

/// A label and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LabelCount {
    /// The label.
    pub label: String,
    /// Its tokens.
    pub tokens: u64,
}

impl Summary {
    /// Looks at a dataset and where it came from.
    pub fn new(dataset: &Dataset, origin: &Origin) -> Self {
        let usage: Vec<Vec<Usage>> = dataset.values.iter().map(|codes| usage(codes, &dataset.counts)).collect();
        let columns: Vec<ColumnSummary> = dataset
            .columns
            .iter()
            .zip(&usage)
            .enumerate()
            .map(|(ix, (column, usage))| ColumnSummary::new(ix, column, usage))
            .collect();
        Summary {
            source: dataset.source.clone(),
            format: origin.format,
            compression: origin.compression,
            rows: origin.n_rows,
            distinct_rows: dataset.n_rows() as u64,
            tokens: n_tokens(dataset),
            zero_rows: dataset.counts.iter().filter(|&count| count == 0).count() as u64,
            unknown_cells: dataset.unknown.len() as u64,
            missing_patterns: missing_patterns(dataset, &columns),
            warnings: dataset.warnings.iter().map(ToString::to_string).collect(),
            odd: odd(dataset, &columns, &usage),
            columns,
        }
    }
}

impl ColumnSummary {
    fn new(ix: usize, column: &Column, usage: &[Usage]) -> Self {
        let missing = usage.last().filter(|usage| usage.code == MISSING);
        ColumnSummary {
            name: column.name.clone().unwrap_or_else(|| (ix + 1).to_string()),
            values: u64::from(column.labels.len()),
            missing_rows: missing.map_or(0, |usage| usage.rows),
            missing_tokens: missing.map_or(0, |usage| usage.tokens),
            most_common: most_common(&column.labels, usage),
            all_integers: match &column.labels {
                Labels::Indexed { size, .. } => *size > 0,
                Labels::Named(names) => integers(names).is_some(),
            },
        }
    }
}

/// How often a value occurs in a column.
#[derive(Debug, Clone, Copy)]
struct Usage {
    code: u32,
    rows: u64,
    tokens: u64,
}

/// Usage of the values that occur, in order of their codes; a missing value comes last. The cost follows the rows,
/// not the size of the column.
fn usage(codes: &CodeList, counts: &CountList) -> Vec<Usage> {
    let mut pairs: Vec<(u32, u64)> = codes.iter().zip(counts.iter()).collect();
    pairs.sort_unstable();
    let group = |group: &[(u32, u64)]| Usage {
        code: group[0].0,
        rows: group.len() as u64,
        tokens: group.iter().fold(0, |sum: u64, &(_, count)| sum.saturating_add(count)),
    };
    pairs.chunk_by(|a, b| a.0 == b.0).map(group).collect()
}

fn most_common(labels: &Labels, usage: &[Usage]) -> Vec<LabelCount> {
    let mut seen: Vec<Usage> = usage.iter().filter(|usage| usage.code != MISSING).copied().collect();
    seen.sort_by_key(|usage| (std::cmp::Reverse(usage.tokens), usage.code));
    let listed = seen.iter().take(N_MOST_COMMON);
    listed.map(|usage| LabelCount { label: labels.name(usage.code).into_owned(), tokens: usage.tokens }).collect()
}

fn n_tokens(dataset: &Dataset) -> u64 {
    dataset.n_tokens().unwrap_or(u64::MAX)
}

fn missing_patterns(dataset: &Dataset, columns: &[ColumnSummary]) -> Vec<MissingPattern> {
    let n_tokens = n_tokens(dataset);
    let mut groups: Vec<(Vec<usize>, u64, u64)> = Vec::new();
    let mut rows: Vec<usize> = (0..dataset.n_rows()).collect();
    let is_missing = |ix: usize, row: usize| dataset.values[ix].at(row) == MISSING;
    let with_missing: Vec<usize> = (0..columns.len()).filter(|&ix| columns[ix].missing_rows > 0).collect();
    // Rows of one pattern side by side, without a vector for each row.
    rows.sort_by(|&a, &b| {
        with_missing.iter().map(|&ix| is_missing(ix, a)).cmp(with_missing.iter().map(|&ix| is_missing(ix, b)))
    });
    let same = |&a: &usize, &b: &usize| with_missing.iter().all(|&ix| is_missing(ix, a) == is_missing(ix, b));
    for group in rows.chunk_by(same) {
        let missing = with_missing.iter().copied().filter(|&ix| is_missing(ix, group[0])).collect();
        let tokens = group.iter().fold(0u64, |sum, &row| sum.saturating_add(dataset.counts.at(row)));
        groups.push((missing, group.len() as u64, tokens));
    }
    groups.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    groups
        .into_iter()
        .map(|(missing, rows, tokens)| MissingPattern {
            columns: missing.iter().map(|&ix| columns[ix].name.clone()).collect(),
            rows,
            tokens,
            share: if n_tokens == 0 { 0.0 } else { tokens as f64 / n_tokens as f64 },
        })
        .collect()
}

/// Everything odd, the file first, then column by column.
fn odd(dataset: &Dataset, columns: &[ColumnSummary], usage: &[Vec<Usage>]) -> Vec<String> {
    let mut odd: Vec<String> = [odd_counts(dataset), odd_header(dataset)].into_iter().flatten().collect();
    for (ix, column) in dataset.columns.iter().enumerate() {
        let look = Look { dataset, column, name: shown(&columns[ix].name), usage: &usage[ix], summary: &columns[ix] };
        odd.extend(look.odd());
    }
    odd
}

fn odd_counts(dataset: &Dataset) -> Option<String> {
    if dataset.n_rows() == 0 && dataset.unknown.is_empty() {
        Some("there are no rows, so no tokens; `--b` must be given to score this".to_owned())
    } else if dataset.n_rows() > 0 && n_tokens(dataset) == 0 {
        Some("all counts are zero, so there are no tokens; check the column `count`".to_owned())
    } else {
        None
    }
}

fn odd_header(dataset: &Dataset) -> Option<String> {
    let is_number = |column: &Column| column.name.as_deref().is_some_and(|name| name.parse::<f64>().is_ok());
    if dataset.columns.is_empty() || !dataset.columns.iter().all(is_number) {
        return None;
    }
    Some("all column names are numbers; if the first line holds data, put a line of names above it".to_owned())
}

/// One column, looked at from all sides.
struct Look<'a> {
    dataset: &'a Dataset,
    column: &'a Column,
    name: String,
    usage: &'a [Usage],
    summary: &'a ColumnSummary,
}

impl Look<'_> {
    fn odd(&self) -> Vec<String> {
        let mut odd: Vec<String> = [self.number_of_values(), self.like_an_id()].into_iter().flatten().collect();
        match &self.column.labels {
            Labels::Named(names) => {
                odd.extend(
                    [self.like_missing(), self.nearly_equal(names), self.integer_labels(names)].into_iter().flatten(),
                );
            }
            Labels::Indexed { size, .. } => odd.extend(self.unused_indices(*size)),
        }
        odd
    }

    /// Number of values that occur in rows, unknown cells left out.
    fn n_seen(&self) -> usize {
        self.usage.iter().filter(|usage| usage.code != MISSING).count()
    }

    fn number_of_values(&self) -> Option<String> {
        let name = &self.name;
        if self.column.labels.is_empty() {
            let has_rows = self.dataset.n_rows() > 0;
            return has_rows
                .then(|| format!("column {name} has no values, all are missing; leave it out of the model"));
        }
        if self.column.labels.len() > 1 {
            return None;
        }
        let label = self.column.labels.name(0);
        Some(format!(
            "column {name} has a single value, {}; it tells nothing unless its size is declared",
            shown(&label)
        ))
    }

    fn like_an_id(&self) -> Option<String> {
        let n_rows = self.dataset.n_rows();
        let is_id = n_rows >= MIN_ROWS_FOR_ID
            && self.dataset.columns.len() > 1
            && self.summary.missing_rows == 0
            && self.n_seen() == n_rows;
        is_id.then(|| {
            format!("column {} differs in all {n_rows} rows; if it is an id, leave it out of the model", self.name)
        })
    }

    fn like_missing(&self) -> Option<String> {
        let label = self.column.labels.like_missing()?;
        Some(format!(
            "column {} has the label {}, which is a value like any other; leave the field empty if it is missing",
            self.name,
            shown(label)
        ))
    }

    /// Labels that differ only in case or in blanks at their ends.
    fn nearly_equal(&self, names: &[String]) -> Option<String> {
        let mut keys: Vec<(String, usize)> =
            names.iter().enumerate().map(|(ix, name)| (name.trim().to_lowercase(), ix)).collect();
        keys.sort();
        let groups = keys.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
        let pairs: Vec<(usize, usize)> = groups.map(|group| (group[0].1, group[1].1)).collect();
        let &(first, second) = pairs.iter().min()?;
        let more = match pairs.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Some(format!(
            "column {} has labels that differ only in case or blanks, {} and {}{more}; they count as different values",
            self.name,
            shown(&names[first]),
            shown(&names[second])
        ))
    }

    fn integer_labels(&self, names: &[String]) -> Option<String> {
        let integers = integers(names)?;
        let (&first, &last) = (integers.first()?, integers.last()?);
        let n_values = integers.len() as u64;
        // Numbers far apart are codes of some kind, not a range.
        let n_range = (last - first).saturating_add(1);
        let has_gaps = n_range > n_values;
        if has_gaps && n_range > n_values.saturating_mul(4) {
            return None;
        }
        let name = &self.name;
        if has_gaps {
            let (size, n_absent) = (last.saturating_add(1), n_range - n_values);
            Some(format!(
                "column {name} holds integers from {first} to {last}, {n_absent} of which never occur and are no \
                 values; declare the size, `[{size}]` for 0 to {last}, if they can occur"
            ))
        } else if first == 1 && last > 1 {
            Some(format!(
                "column {name} holds the integers 1 to {last}; a declared size `[n]` expects 0 to n-1, so do not \
                 declare it or subtract 1"
            ))
        } else {
            None
        }
    }

    fn unused_indices(&self, size: u32) -> Option<String> {
        let n_seen = self.n_seen() as u64;
        let n_absent = u64::from(size).saturating_sub(n_seen);
        if n_absent == 0 || n_seen == 0 {
            return None;
        }
        Some(format!(
            "axis {} has {size} values, {n_absent} of which are in no row; they count in its size all the same, so \
             renumber the axis if they cannot occur",
            self.name
        ))
    }
}

/// The labels as whole numbers in rising order, if all of them are such, and no two are the same number.
fn integers(names: &[String]) -> Option<Vec<u64>> {
    let mut integers: Vec<u64> = names.iter().map(|name| parse_digits(name)).collect::<Option<_>>()?;
    integers.sort_unstable();
    let is_set = integers.windows(2).all(|pair| pair[0] < pair[1]);
    (is_set && !integers.is_empty()).then_some(integers)
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, read_stream};
    use super::*;
    use crate::counts::DatasetBuilder;

    fn summary_as(text: &str, format: Format) -> Summary {
        let mut builder = DatasetBuilder::new("test.csv");
        let (format, compression) =
            read_stream(text.as_bytes(), "test.csv", None, Some(format), &ReadOptions::default(), &mut builder)
                .expect(text);
        let origin = Origin { format, compression, n_rows: builder.n_rows_read() };
        let dataset = builder.finish();
        Summary::new(&dataset, &origin)
    }

    fn summary(text: &str) -> Summary {
        summary_as(text, Format::Csv)
    }

    #[track_caller]
    fn assert_odd(text: &str, wanted: &str) {
        let odd = summary(text).odd;
        assert!(odd.iter().any(|line| line.contains(wanted)), "{text:?}: {odd:?}");
        assert!(odd.iter().all(|line| !line.contains('\n')));
    }

    #[test]
    fn numbers_of_rows_tokens_and_cells_are_right() {
        let summary = summary("a,b,count\nx,p,3\ny,p,0\nx,p,2\nz,,4\n,,1\nx,q,?\n");
        assert_eq!(summary.source, "test.csv");
        assert_eq!(summary.format, Format::Csv);
        assert_eq!((summary.rows, summary.distinct_rows, summary.tokens), (6, 4, 10));
        assert_eq!((summary.zero_rows, summary.unknown_cells), (1, 1));
        assert_eq!(summary.warnings, ["1 rows repeat an earlier row; their counts were added"]);
        let a = &summary.columns[0];
        assert_eq!((a.name.as_str(), a.values, a.missing_rows, a.missing_tokens), ("a", 3, 1, 1));
        let common: Vec<_> = a.most_common.iter().map(|item| (item.label.as_str(), item.tokens)).collect();
        assert_eq!(common, [("x", 5), ("z", 4), ("y", 0)]);
        assert_eq!(summary.columns[1].missing_tokens, 5);
    }

    #[test]
    fn patterns_of_missing_values_come_with_their_share() {
        let patterns = summary("a,b,count\nx,p,3\nz,,4\ny,,2\n,,1\n").missing_patterns;
        let found: Vec<_> = patterns.iter().map(|p| (p.columns.join("+"), p.rows, p.tokens, p.share)).collect();
        let expected = [("b".to_owned(), 2, 6, 0.6), (String::new(), 1, 3, 0.3), ("a+b".to_owned(), 1, 1, 0.1)];
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_without_counts_are_counted_before_merging() {
        let summary = summary("a\nx\nx\ny\n");
        assert_eq!((summary.rows, summary.distinct_rows, summary.tokens), (3, 2, 3));
    }

    #[test]
    fn it_serialises_with_plain_names() {
        let value = serde_json::to_value(summary("a,count\nx,1\ny,2\n")).unwrap();
        assert_eq!(value["format"], "csv");
        assert_eq!(value["compression"], serde_json::Value::Null);
        assert_eq!(value["columns"][0]["most_common"][0]["label"], "y");
    }

    #[test]
    fn nothing_odd_is_said_of_plain_data() {
        assert_eq!(summary("a,b,count\nx,p,1\ny,q,2\nx,q,3\n").odd, Vec::<String>::new());
        assert_eq!(summary("a,b,count\n0,p,1\n1,q,2\n2,q,3\n").odd, Vec::<String>::new());
        assert_eq!(summary_as("1 1 4\n2 2 1\n", Format::Tns).odd, Vec::<String>::new());
    }

    #[test]
    fn odd_counts_are_said() {
        assert_odd("a,count\n", "there are no rows");
        assert_odd("a,count\nx,0\ny,0\n", "all counts are zero");
        assert_odd("1,2\n3,4\n", "all column names are numbers");
    }

    #[test]
    fn odd_numbers_of_values_are_said() {
        assert_odd("a,b\nx,p\nx,q\n", "column `a` has a single value, `x`");
        assert_odd("a,b\nx,\ny,\n", "column `b` has no values, all are missing");
        let rows: String = (0..12).map(|ix| format!("id{ix}x,{}\n", ix % 2)).collect();
        assert_odd(&format!("id,b\n{rows}"), "column `id` differs in all 12 rows");
    }

    #[test]
    fn odd_labels_are_said() {
        assert_odd("a\nx\nNA\n", "column `a` has the label `NA`");
        assert_odd("a\nx\n?\n", "the label `?`");
        assert_odd("a\nx\nNone\n", "the label `None`");
        assert_odd("a\nYes\nno\nyes\nNo\n", "differ only in case or blanks, `Yes` and `yes` (and 1 more)");
        assert_odd("a\nx\n\"x \"\n", "`x` and `x `");
    }

    #[test]
    fn odd_integers_are_said() {
        assert_odd("a\n2\n1\n3\n", "column `a` holds the integers 1 to 3");
        assert_odd(
            "a\n0\n1\n4\n",
            "integers from 0 to 4, 2 of which never occur and are no values; declare the size, `[5]`",
        );
        assert_eq!(summary("a\n100\n90000\n").odd, Vec::<String>::new());
        let odd = summary_as("1 1 1\n5 2 1\n", Format::Tns).odd;
        assert_eq!(odd.len(), 1);
        assert!(odd[0].contains("axis `1` has 5 values, 3 of which are in no row"), "{odd:?}");
    }

    #[test]
    fn integers_are_told_from_other_labels() {
        let found: Vec<bool> =
            summary("a,b,c\n0,1.5,\n1,2,\n").columns.iter().map(|column| column.all_integers).collect();
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn a_huge_axis_costs_nothing() {
        let summary = summary_as("4294967294 1 1\n1 1 2\n", Format::Tns);
        assert_eq!(summary.columns[0].values, 4_294_967_294);
        assert_eq!(summary.columns[0].most_common[0].label, "1");
        assert!(summary.columns[0].all_integers);
    }
}
