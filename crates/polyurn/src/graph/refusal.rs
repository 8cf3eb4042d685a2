//! How tests hold the refusal of a model against what it should say and where it should point.

use crate::error::{Error, Result};
use std::fmt::Debug;

/// A model error with these words that points at this part of the text.
#[track_caller]
pub fn assert_refused<T: Debug>(found: Result<T>, text: &str, words: &str, at: &str) {
    match found {
        Err(Error::Model(error)) => {
            assert!(error.message.contains(words), "{text}: {}", error.message);
            let place = error.place.unwrap();
            assert_eq!(&place.text[place.span.clone()], at, "{text}: {}", error.message);
        }
        other => panic!("{text}: expected a model error, got {other:?}"),
    }
}
