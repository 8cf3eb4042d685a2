//! Codes and labels of a column, chunk by chunk: those of a dictionary in its order, others in the order of their first appearance.

use super::foreign::{Chunk, Place, Values};
use polyurn::{Error, Result};
use std::collections::HashMap;

/// A value of a column without a dictionary, before it has a name.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Whole(i128),
    /// The bits of a float.
    Real(u64),
    Truth(bool),
}

/// What was seen of a column so far.
#[derive(Default)]
pub struct Encoder {
    codes: Vec<i32>,
    labels: Vec<String>,
    by_label: HashMap<String, i32>,
    by_key: HashMap<Key, i32>,
    /// Codes of floats whose labels are left to Python: of the shortest texts that mean a float it may take another one than we would.
    unnamed: Vec<(usize, f64)>,
    /// The dictionary of the chunk before, and the code of each of its values: most chunks share one.
    dictionary: Option<(Place, Vec<i32>)>,
}

/// The code of a missing value.
const MISSING: i32 = -1;

impl Encoder {
    /// Codes, labels, and floats that Python is to name.
    pub fn finish(self) -> (Vec<i32>, Vec<String>, Vec<(usize, f64)>) {
        (self.codes, self.labels, self.unnamed)
    }

    /// Adds the rows of a chunk.
    ///
    /// # Errors
    /// Text that is none, an index beyond its dictionary, more values than there are codes.
    pub fn add(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.codes.reserve(chunk.len);
        match &chunk.values {
            Values::Dictionary { keys, values, place } => {
                let codes = self.codes_of_dictionary(values, place)?;
                for row in 0..chunk.len {
                    let code = match chunk.is_valid(row) {
                        false => MISSING,
                        true => {
                            let key = keys.integer(row).and_then(|key| usize::try_from(key).ok());
                            *key.and_then(|key| codes.get(key))
                                .ok_or_else(|| fault("an index goes beyond its dictionary"))?
                        }
                    };
                    self.codes.push(code);
                }
                self.dictionary = Some((place.clone(), codes));
            }
            _ => {
                for row in 0..chunk.len {
                    let code = self.code_of(chunk, row)?;
                    self.codes.push(code);
                }
            }
        }
        Ok(())
    }

    /// The code of each value of a dictionary; all are values of the column, whether they occur or not.
    fn codes_of_dictionary(&mut self, values: &Chunk<'_>, place: &Place) -> Result<Vec<i32>> {
        match self.dictionary.take() {
            Some((before, codes)) if before == *place && codes.len() == values.len => Ok(codes),
            _ => (0..values.len).map(|row| self.code_of(values, row)).collect(),
        }
    }

    fn code_of(&mut self, chunk: &Chunk<'_>, row: usize) -> Result<i32> {
        if !chunk.is_valid(row) {
            return Ok(MISSING);
        }
        if let Some(text) = chunk.values.text(row)? {
            return self.code_of_label(text);
        }
        let (key, label) = match (chunk.values.truth(row), chunk.values.integer(row), chunk.values.real(row)) {
            (Some(truth), ..) => (Key::Truth(truth), if truth { "True" } else { "False" }.to_owned()),
            (_, Some(value), _) => (Key::Whole(value), String::new()),
            (.., Some(value)) if value.is_nan() => return Ok(MISSING),
            (.., Some(value)) => (Key::Real(value.to_bits()), String::new()),
            _ => return Err(fault("values of a dictionary that are dictionaries themselves")),
        };
        if let Some(&code) = self.by_key.get(&key) {
            return Ok(code);
        }
        let code = match key {
            Key::Truth(_) => self.code_of_label(&label)?,
            Key::Whole(value) => self.code_of_label(&value.to_string())?,
            Key::Real(bits) => self.code_of_real(f64::from_bits(bits))?,
        };
        self.by_key.insert(key, code);
        Ok(code)
    }

    /// A whole float is called as the integer that it is, as in other tables.
    fn code_of_real(&mut self, value: f64) -> Result<i32> {
        if value.fract() == 0.0 {
            // Zero has no sign.
            return self.code_of_label(&format!("{:.0}", value + 0.0));
        }
        let code = self.new_code(String::new())?;
        self.unnamed.push((code as usize, value));
        Ok(code)
    }

    fn code_of_label(&mut self, label: &str) -> Result<i32> {
        if let Some(&code) = self.by_label.get(label) {
            return Ok(code);
        }
        let code = self.new_code(label.to_owned())?;
        self.by_label.insert(label.to_owned(), code);
        Ok(code)
    }

    fn new_code(&mut self, label: String) -> Result<i32> {
        let code = i32::try_from(self.labels.len()).map_err(|_| fault("more values than codes of 32 bits"))?;
        self.labels.push(label);
        Ok(code)
    }
}

fn fault(message: &str) -> Error {
    Error::data("table", message)
}
