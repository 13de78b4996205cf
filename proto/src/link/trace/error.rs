//! What is wrong with a trace.

use alloc::string::String;
use core::fmt;

/// A file that is no trace: one sentence, with the line where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    line: Option<usize>,
    message: String,
}

impl TraceError {
    /// A fault of the whole file.
    pub(super) fn of_file(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }

    /// A fault in a line, which are counted from 1.
    pub(super) fn at_line(line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl core::error::Error for TraceError {}
