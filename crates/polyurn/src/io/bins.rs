//! Numbers cut into categories: a column of a table becomes a node with a few ordered values.
//!
//! Cuts are found in a first pass over the file, from the distinct numbers of a column and how many tokens each has. A number `x` is in
//! the category after all cuts that are at most `x`, so the first and the last reach to infinity, and numbers of another file have a
//! category too. Cuts say all there is to know: a fit keeps them.

use super::lines::shown;
use super::{ReadOptions, read_rows_watched};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

/// Most categories of a column.
const MAX_BINS: usize = 1000;

/// How to choose cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BinMethod {
    /// Least sum of squared distances to the mean of the category: k-means, but always the best solution.
    KMeans,
    /// About equally many tokens in each category.
    Quantile,
    /// Equally wide from the least to the greatest number.
    Width,
}

/// A wish to cut columns: `height=5`, `height,weight=5:quantile`.
///
/// ```
/// use polyurn::io::{BinMethod, BinSpec};
/// let spec: BinSpec = "height,weight=5:quantile".parse().unwrap();
/// assert_eq!((spec.columns.len(), spec.n_bins, spec.method), (2, 5, BinMethod::Quantile));
/// assert_eq!("height=4".parse::<BinSpec>().unwrap().method, BinMethod::KMeans);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinSpec {
    /// Names of columns.
    pub columns: Vec<String>,
    /// Number of categories, from 2.
    pub n_bins: usize,
    /// How to choose them.
    pub method: BinMethod,
}

impl FromStr for BinSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = "write NAME=N or NAME=N:METHOD, as in height,weight=5:quantile";
        let (columns, how) = text.rsplit_once('=').ok_or_else(|| format!("`{text}` has no `=`; {form}"))?;
        let (n_bins, method) = how.split_once(':').unwrap_or((how, "kmeans"));
        let method = match method {
            "kmeans" => BinMethod::KMeans,
            "quantile" => BinMethod::Quantile,
            "width" => BinMethod::Width,
            _ => return Err(format!("`{method}` is no way to cut; take kmeans, quantile or width")),
        };
        let n_bins = n_bins.parse().ok().filter(|n| (2..=MAX_BINS).contains(n));
        let n_bins = n_bins.ok_or_else(|| format!("the number of categories is from 2 to {MAX_BINS}; {form}"))?;
        let columns: Vec<String> = columns.split(',').map(|name| name.trim().to_owned()).collect();
        if columns.iter().any(String::is_empty) {
            return Err(format!("a column has no name; {form}"));
        }
        Ok(BinSpec { columns, n_bins, method })
    }
}

/// The cuts of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cuts {
    /// The column.
    pub column: String,
    /// How they were chosen.
    pub method: BinMethod,
    /// Ascending; category 0 is below the first, category k from cut k - 1 on.
    pub cuts: Vec<f64>,
}

impl Cuts {
    /// What the categories are called, in order: `< 0.1`, `[0.1, 0.25)`, `>= 0.25`.
    pub fn labels(&self) -> Vec<String> {
        let (Some(first), Some(last)) = (self.cuts.first(), self.cuts.last()) else {
            return vec!["any number".to_owned()];
        };
        let between = self.cuts.windows(2).map(|pair| format!("[{}, {})", pair[0], pair[1]));
        [format!("< {first}")].into_iter().chain(between).chain([format!(">= {last}")]).collect()
    }

    /// The category of a value as it is written, by the [`labels`](Cuts::labels) of all: of a number, or one that is called so already.
    ///
    /// # Errors
    /// What is wrong with a value that is neither.
    pub fn category(&self, labels: &[String], text: &str) -> std::result::Result<u32, String> {
        match number(text) {
            Ok(number) => Ok(self.cuts.partition_point(|&cut| cut <= number) as u32),
            Err(message) => labels.iter().position(|label| label == text).map(|ix| ix as u32).ok_or(message),
        }
    }
}

fn number(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(format!(
            "{} is not finite, and cannot be put into a category; leave the field empty if it is not known",
            shown(text)
        )),
        Err(_) => Err(format!(
            "{} is not a number, and only numbers can be cut into categories; leave the field empty if it is not known",
            shown(text)
        )),
    }
}

/// Finds the cuts of columns of a file, in one pass; and what is odd about them. Memory follows the distinct numbers.
///
/// # Errors
/// When the file cannot be read twice, has no such column, or when the column holds what is no number.
pub fn find_cuts(path: &Path, options: &ReadOptions, specs: &[BinSpec]) -> Result<(Vec<Cuts>, Vec<Warning>)> {
    find_cuts_watched(path, options, specs, &mut |_| Ok(()))
}

/// Finds cuts as [`find_cuts`] does, with a `watch` as in [`read_watched`](super::read_watched).
///
/// # Errors
/// As for [`find_cuts`], and whatever `watch` says.
pub fn find_cuts_watched(
    path: &Path,
    options: &ReadOptions,
    specs: &[BinSpec],
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<(Vec<Cuts>, Vec<Warning>)> {
    if path == Path::new("-") {
        let message =
            "--bin: cuts need a first pass over the data, and standard input can be read only once; save it to a file";
        return Err(Error::Setting(message.to_owned()));
    }
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for spec in specs {
        for name in &spec.columns {
            if wanted.iter().any(|other| other.name == name) {
                return Err(Error::Setting(format!("--bin: column `{name}` is to be cut twice; give it once")));
            }
            wanted.push(Wanted { name, spec, column: None, weights: HashMap::new() });
        }
    }
    let mut gather = Gather { wanted, names: Vec::new(), source: String::new(), takes_fractions: options.fractions };
    read_rows_watched(path, options, &mut gather, watch)?;
    gather.check_columns()?;
    let mut warnings = Vec::new();
    let mut all = Vec::with_capacity(gather.wanted.len());
    for wanted in gather.wanted {
        let mut values: Vec<(f64, f64)> = wanted
            .weights
            .into_iter()
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(bits, weight)| (f64::from_bits(bits), weight))
            .collect();
        values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let cuts = cut(&values, wanted.spec.n_bins, wanted.spec.method);
        if cuts.len() + 1 < wanted.spec.n_bins {
            let message = format!(
                "column `{}` has {} distinct numbers, too few or too often the same for {} categories; it gets {}",
                wanted.name,
                values.len(),
                wanted.spec.n_bins,
                cuts.len() + 1
            );
            warnings.push(Warning::Odd { message });
        }
        all.push(Cuts { column: wanted.name.to_owned(), method: wanted.spec.method, cuts });
    }
    Ok((all, warnings))
}

struct Wanted<'a> {
    name: &'a str,
    spec: &'a BinSpec,
    column: Option<usize>,
    /// Tokens of each number, by its bits.
    weights: HashMap<u64, f64>,
}

/// Collects the numbers of columns.
struct Gather<'a> {
    wanted: Vec<Wanted<'a>>,
    names: Vec<String>,
    source: String,
    takes_fractions: bool,
}

impl Gather<'_> {
    fn check_columns(&self) -> Result<()> {
        let Some(missing) = self.wanted.iter().find(|wanted| wanted.column.is_none()) else { return Ok(()) };
        let message = if self.names.is_empty() {
            format!(
                "--bin {}: the file has no named columns of values; cuts are for CSV, TSV, Parquet and Arrow",
                missing.name
            )
        } else {
            format!(
                "--bin {}: there is no column of this name; the columns are {}",
                missing.name,
                self.names.join(", ")
            )
        };
        Err(Error::data(&self.source, message))
    }
}

impl RowSink for Gather<'_> {
    fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
    }

    fn label_column(&mut self, name: Option<String>) {
        let name = name.unwrap_or_default();
        if let Some(wanted) = self.wanted.iter_mut().find(|wanted| wanted.name == name) {
            wanted.column = Some(self.names.len());
        }
        self.names.push(name);
    }

    fn index_column(&mut self, _: Option<String>, _: u32, _: Option<u32>) {
        self.names.push(String::new());
    }

    fn rows_are_tokens(&mut self) {}

    fn takes_fractions(&self) -> bool {
        self.takes_fractions
    }

    fn warn(&mut self, _: Warning) {}

    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        self.check_columns()?;
        let tokens = match count {
            RowCount::Tokens(n) => n as f64,
            RowCount::Fraction(n, unit, _) => unit.tokens(n),
            RowCount::Unknown => 0.0,
        };
        for (ix, cell) in cells.into_iter().enumerate() {
            let Some(wanted) = self.wanted.iter_mut().find(|wanted| wanted.column == Some(ix)) else { continue };
            if let Cell::Label(text) = cell {
                let number = number(text);
                let number =
                    number.map_err(|message| Error::data_at(&self.source, line, Some(wanted.name), message))?;
                // The two zeros are one number.
                *wanted.weights.entry((number + 0.0).to_bits()).or_insert(0.0) += tokens;
            }
        }
        Ok(())
    }
}

/// Cuts of ascending numbers with weights.
fn cut(values: &[(f64, f64)], n_bins: usize, method: BinMethod) -> Vec<f64> {
    if values.len() < 2 {
        return Vec::new();
    }
    let starts = match method {
        BinMethod::Width => return even_cuts(values[0].0, values[values.len() - 1].0, n_bins),
        BinMethod::KMeans => best_starts(values, n_bins.min(values.len())),
        BinMethod::Quantile => quantile_starts(values, n_bins),
    };
    starts.into_iter().map(|start| short_between(values[start - 1].0, values[start].0)).collect()
}

fn even_cuts(least: f64, most: f64, n_bins: usize) -> Vec<f64> {
    let mut cuts: Vec<f64> = (1..n_bins)
        .map(|ix| {
            let share = ix as f64 / n_bins as f64;
            let cut = least * (1.0 - share) + most * share;
            // Twelve digits: what lies beyond is rounding.
            format!("{cut:.11e}").parse().unwrap_or(cut)
        })
        .collect();
    cuts.dedup();
    cuts
}

/// Where categories but the first start so that the weight before them is as near as can be to its share.
fn quantile_starts(values: &[(f64, f64)], n_bins: usize) -> Vec<usize> {
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut before = Vec::with_capacity(values.len());
    let mut sum = 0.0;
    for (_, weight) in values {
        before.push(sum);
        sum += weight;
    }
    let mut starts: Vec<usize> = (1..n_bins)
        .map(|ix| {
            let target = total * ix as f64 / n_bins as f64;
            let after = before.partition_point(|&sum| sum < target).min(values.len() - 1);
            if after > 1 && target - before[after - 1] <= before[after] - target { after - 1 } else { after.max(1) }
        })
        .collect();
    starts.dedup();
    starts
}

/// Where categories but the first start so that the sum of squared distances to their means is least. Exact, by dynamic programming over
/// ascending values: D_k(j) = min_i D_{k-1}(i) + cost(i..j), where the best i does not fall as j grows. O(k m log m) for m values.
fn best_starts(values: &[(f64, f64)], n_bins: usize) -> Vec<usize> {
    let n = values.len();
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    // About the mean, and in units of the range, sums of squares neither cancel nor overflow.
    let range = (values[n - 1].0 / 2.0 - values[0].0 / 2.0) * 2.0;
    let scale = if range.is_finite() && range > 0.0 { range } else { f64::MAX };
    let mean: f64 = values.iter().map(|(value, weight)| value / scale * (weight / total)).sum();
    let mut sums = vec![[0.0; 3]; n + 1];
    for (ix, (value, weight)) in values.iter().enumerate() {
        let x = value / scale - mean;
        let [w, wx, wxx] = sums[ix];
        sums[ix + 1] = [w + weight, wx + weight * x, wxx + weight * x * x];
    }
    let cost = |from: usize, to: usize| {
        let [w, wx, wxx]: [f64; 3] = std::array::from_fn(|ix| sums[to][ix] - sums[from][ix]);
        (wxx - wx * wx / w).max(0.0)
    };
    let mut best: Vec<f64> = (0..=n).map(|to| if to == 0 { 0.0 } else { cost(0, to) }).collect();
    let mut starts: Vec<Vec<u32>> = Vec::with_capacity(n_bins);
    for n_before in 1..n_bins {
        let mut next = vec![f64::INFINITY; n + 1];
        let mut start = vec![0u32; n + 1];
        // Ends and where the last category may start, both inclusive.
        let mut open = vec![(n_before + 1, n, n_before, n - 1)];
        while let Some((low, high, from, to)) = open.pop() {
            if low > high {
                continue;
            }
            let middle = low + (high - low) / 2;
            let mut found = (f64::INFINITY, from);
            for ix in from..=to.min(middle - 1) {
                let sum = best[ix] + cost(ix, middle);
                if sum < found.0 {
                    found = (sum, ix);
                }
            }
            next[middle] = found.0;
            start[middle] = found.1 as u32;
            open.push((low, middle - 1, from, found.1));
            open.push((middle + 1, high, found.1, to));
        }
        best = next;
        starts.push(start);
    }
    let mut end = n;
    let mut found: Vec<usize> = starts
        .iter()
        .rev()
        .map(|start| {
            end = start[end] as usize;
            end
        })
        .collect();
    found.reverse();
    found
}

/// The number with fewest digits above `below` and up to `above`, near the middle of the two.
fn short_between(below: f64, above: f64) -> f64 {
    let middle = below / 2.0 + above / 2.0;
    let rounded = (0..17).filter_map(|digits| format!("{middle:.digits$e}").parse::<f64>().ok());
    rounded.into_iter().find(|cut| below < *cut && *cut <= above).unwrap_or(above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::read;
    use proptest::prelude::*;

    fn weighted(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().map(|&value| (value, 1.0)).collect()
    }

    #[test]
    fn wishes_are_parsed() {
        let wrong = |text: &str| text.parse::<BinSpec>().unwrap_err();
        assert_eq!("a=b=3:width".parse::<BinSpec>().unwrap().columns, ["a=b"]);
        for text in ["a", "a=", "a=1", "a=1001", "a=x", "=3", "a,,b=3", "a=-3", "a=2.5"] {
            assert!(wrong(text).contains("NAME=N"), "{text}: {}", wrong(text));
        }
        assert!(wrong("a=3:means").contains("take kmeans, quantile or width"));
    }

    #[test]
    fn clusters_are_cut_apart_with_short_numbers() {
        let values = weighted(&[0.11, 0.12, 0.13, 0.52, 0.53, 0.91, 0.95]);
        assert_eq!(cut(&values, 3, BinMethod::KMeans), [0.3, 0.7]);
        assert_eq!(cut(&weighted(&[1.0, 2.0, 3.0, 4.0]), 4, BinMethod::Quantile), [2.0, 2.5, 4.0]);
        assert_eq!(cut(&weighted(&[0.0, 0.1, 1.0]), 4, BinMethod::Width), [0.25, 0.5, 0.75]);
        for method in [BinMethod::KMeans, BinMethod::Quantile] {
            assert_eq!(cut(&weighted(&[1.0, 2.0]), 5, method).len(), 1, "{method:?}");
        }
        assert!(cut(&weighted(&[1.0]), 5, BinMethod::Width).is_empty() && cut(&[], 5, BinMethod::KMeans).is_empty());
        assert_eq!(cut(&weighted(&[-1e308, 1e308]), 2, BinMethod::KMeans), [0.0]);
    }

    #[test]
    fn quantiles_keep_equal_numbers_together() {
        // The first number has nine tenths of the weight, so no cut but the one behind it is near a quarter.
        let values = [(0.0, 100.0), (1.0, 5.0), (2.0, 5.0)];
        assert_eq!(cut(&values, 4, BinMethod::Quantile), [0.5]);
        let values = [(0.0, 40.0), (1.0, 5.0), (2.0, 55.0)];
        assert_eq!(cut(&values, 2, BinMethod::Quantile), [2.0]);
    }

    #[test]
    fn categories_have_labels_in_order_and_reach_to_infinity() {
        let cuts = Cuts { column: "x".into(), method: BinMethod::Width, cuts: vec![0.1, 0.25] };
        let labels = cuts.labels();
        assert_eq!(labels, ["< 0.1", "[0.1, 0.25)", ">= 0.25"]);
        for (text, category) in [("-1e9", 0), ("0.0999", 0), ("0.1", 1), ("2.5e-1", 2), ("99", 2), ("[0.1, 0.25)", 1)] {
            assert_eq!(cuts.category(&labels, text), Ok(category), "{text}");
        }
        for text in ["x", "nan", "inf", "1,5", "[0.1, 0.3)"] {
            assert!(cuts.category(&labels, text).is_err(), "{text}");
        }
    }

    #[test]
    fn columns_of_a_file_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let read_binned = |text: &str, specs: &[&str]| {
            std::fs::write(&path, text).unwrap();
            let specs: Vec<BinSpec> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
            let (cuts, warnings) = find_cuts(&path, &ReadOptions::default(), &specs)?;
            let options = ReadOptions { cuts, ..Default::default() };
            read(&path, &options).map(|data| (data, options.cuts, warnings))
        };
        let text = "x,y,count\n1,a,3\n9,b,1\n,a,2\n2,a,0\n1.5,a,1\n";
        let (data, cuts, warnings) = read_binned(text, &["x=2"]).unwrap();
        assert_eq!(cuts[0].cuts, [5.0]);
        assert_eq!((0..2).map(|ix| data.columns[0].labels.name(ix).into_owned()).collect::<Vec<_>>(), ["< 5", ">= 5"]);
        assert_eq!(data.values[0], [0, 1, crate::counts::MISSING]);
        assert_eq!(data.counts, [4, 1, 2]);
        assert!(warnings.is_empty());
        assert_eq!(read_binned(text, &["x=5"]).unwrap().2.len(), 1);
        let refusal = |text: &str, specs: &[&str]| read_binned(text, specs).unwrap_err().to_string();
        let message = refusal("x,y\n1,2\n1,tall\n", &["x,y=2"]);
        assert!(message.contains("a.csv, line 3, column y: `tall` is not a number"), "{message}");
        assert!(refusal("x\n1\ninf\n", &["x=2"]).contains("line 3, column x: `inf` is not finite"));
        assert!(refusal("x\n1\n", &["z=2"]).contains("--bin z: there is no column of this name; the columns are x"));
        assert!(refusal("x\n1\n", &["x=2", "x=3"]).contains("cut twice"));
        let error = find_cuts(Path::new("-"), &ReadOptions::default(), &[]).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("read only once"));
    }

    /// All ways to cut `values` into `n` parts; the least sum of squares.
    fn least(values: &[(f64, f64)], n: usize) -> f64 {
        let cost = |part: &[(f64, f64)]| {
            let weight: f64 = part.iter().map(|(_, w)| w).sum();
            let mean = part.iter().map(|(x, w)| x * w).sum::<f64>() / weight;
            part.iter().map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>()
        };
        if n == 1 {
            return cost(values);
        }
        let splits = n - 1..values.len();
        splits.map(|at| least(&values[..at], n - 1) + cost(&values[at..])).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn k_means_is_the_best_there_is(
            mut steps in prop::collection::vec((0.01..9.0f64, 1u8..5), 3..10),
            n in 2usize..4,
        ) {
            let mut at = -10.0;
            for (step, _) in &mut steps {
                at += *step;
                *step = at;
            }
            let values: Vec<(f64, f64)> = steps.iter().map(|&(x, w)| (x, f64::from(w))).collect();
            let starts = best_starts(&values, n);
            let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([values.len()]).collect();
            let found: f64 = bounds.windows(2).map(|pair| least(&values[pair[0]..pair[1]], 1)).sum();
            let best = least(&values, n);
            prop_assert!((found - best).abs() <= 1e-9 * (1.0 + best), "{} instead of {}", found, best);
        }

        #[test]
        fn every_cut_parts_the_values_it_stands_between(mut values in prop::collection::vec(-1e3..1e3f64, 2..40), n in 2usize..9) {
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            for method in [BinMethod::KMeans, BinMethod::Quantile, BinMethod::Width] {
                let cuts = cut(&weighted(&values), n, method);
                prop_assert!(cuts.len() < n && cuts.is_sorted_by(|one, other| one < other));
                prop_assert!(cuts.iter().all(|&cut| values[0] < cut && cut <= values[values.len() - 1]));
            }
        }
    }
}
